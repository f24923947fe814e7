variable "cloud" {
  description = "Entry of clouds.yaml on this computer, by which Terraform calls the cloud."
  type        = string
}

variable "auth_url" {
  description = "Address of Keystone, such as https://keystone.example.org:5000/v3; goes into clouds.yaml of the management node."
  type        = string
}

variable "region" {
  description = "Region of the cloud."
  type        = string
  default     = "RegionOne"
}

variable "cluster_id" {
  description = "Name of the cluster: lower-case letters, digits and hyphens. In the metadata `cluster` of every server, and in node names."
  type        = string
}

variable "external_network" {
  description = "Name of the network that floating addresses come from: openstack network list --external."
  type        = string
}

variable "network_cidr" {
  description = "Range of the cluster's network."
  type        = string
  default     = "10.1.0.0/16"
}

variable "dns_nameservers" {
  description = "Name servers of the cluster's network; empty for the cloud's own."
  type        = list(string)
  default     = []
}

variable "management_flavor" {
  description = "Flavor of the management node: at least 2 CPUs and 4 GB."
  type        = string
}

variable "management_image" {
  description = "Image of the management node, by name: Debian 12, Ubuntu 22.04 or newer, or Rocky Linux 9."
  type        = string
}

variable "management_user" {
  description = "User that logs in: debian, ubuntu or rocky, as the image has it."
  type        = string
  default     = "debian"
}

variable "compute_image_id" {
  description = "Image of compute nodes, as deploy/image makes it. Empty takes that of the management node: each node then configures itself when it boots, which takes minutes."
  type        = string
  default     = ""
}

variable "keypair" {
  description = "Key pair of all machines, by name: openstack keypair list."
  type        = string
}

variable "ssh_private_key_file" {
  description = "The private key to it on this computer, for the destroy hook, the package and the credentials; empty for the SSH agent."
  type        = string
  default     = ""
}

variable "allowed_cidr" {
  description = "Where SSH to the management node may come from. Yours: curl ifconfig.me, with /32 behind it."
  type        = string

  validation {
    condition     = can(cidrnetmask(var.allowed_cidr))
    error_message = "allowed_cidr must be an IPv4 range, such as 192.0.2.7/32."
  }
}

variable "share_gb" {
  description = "Size of the volume that the management node exports to all nodes, in gigabytes."
  type        = number
  default     = 100
}

variable "package" {
  description = "Package of slurm-elastic on this computer: packaging/deb prints its path."
  type        = string
}

variable "repository" {
  description = "Git repository that machines fetch deploy/ansible from: this one, or your copy."
  type        = string
}

variable "branch" {
  description = "Branch, tag or commit of the repository."
  type        = string
  default     = "main"
}

variable "limits" {
  description = "How many machines of which flavor; becomes /etc/citc/limits.yaml."
  type        = any
  default     = {}
}

variable "ansible" {
  description = "More variables of the playbooks, such as { cluster_monitoring = true } or { slurm_suspend_time = 300 }."
  type        = any
  default     = {}
}
