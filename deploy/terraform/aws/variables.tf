variable "region" {
  description = "Region, such as eu-west-1."
  type        = string
}

variable "profile" {
  description = "Profile of ~/.aws/config on this computer, by which Terraform calls the cloud; null for the environment's."
  type        = string
  default     = null
}

variable "cluster_id" {
  description = "Name of the cluster: lower-case letters, digits and hyphens. In the tag `cluster` of every machine, and in node names."
  type        = string
}

variable "zones" {
  description = "Availability zones, each with a subnet, such as [\"eu-west-1a\", \"eu-west-1b\"]. The first has the management node; nodes go to the others when it is full."
  type        = list(string)

  validation {
    condition     = length(var.zones) > 0 && length(var.zones) <= 4 && length(distinct(var.zones)) == length(var.zones)
    error_message = "zones must name one to four different availability zones of the region."
  }
}

variable "management_type" {
  description = "Instance type of the management node: at least 2 CPUs and 4 GB. It has to be x86_64, or the package has to be built for arm64."
  type        = string
  default     = "t3.large"
}

variable "management_image_id" {
  description = "Image of the management node: Debian 12, Ubuntu 22.04 or newer, or Rocky Linux 9. Empty takes Canonical's newest Ubuntu 24.04."
  type        = string
  default     = ""
}

variable "management_user" {
  description = "User that logs in: ubuntu, admin (Debian) or rocky, as the image has it."
  type        = string
  default     = "ubuntu"
}

variable "management_disk_gb" {
  description = "Size of the disk of the management node, in gigabytes."
  type        = number
  default     = 30
}

variable "compute_image_id" {
  description = "Image of compute nodes, as deploy/image makes it. Empty takes that of the management node: each node then configures itself when it boots, which takes minutes."
  type        = string
  default     = ""
}

variable "ssh_public_key" {
  description = "Public key that may log in, as one line."
  type        = string

  validation {
    condition     = can(regex("^(ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI[A-Za-z0-9+/]{43}|ssh-rsa AAAAB3NzaC1yc2E[A-Za-z0-9+/]{100,}={0,2})( .*)?\\s*$", var.ssh_public_key))
    error_message = "ssh_public_key must be the whole line of a public key of the kind ED25519 or RSA, which are those that EC2 takes, such as `ssh-ed25519 AAAA… you@example.org`: the content of ~/.ssh/id_ed25519.pub, not its path."
  }
}

variable "ssh_private_key_file" {
  description = "The private key to it on this computer, for the destroy hook and the package; empty for the SSH agent."
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

variable "network_cidr" {
  description = "Range of the cluster's network."
  type        = string
  default     = "10.1.0.0/16"
}

variable "compute_policies" {
  description = "ARNs of policies that compute nodes have, such as that for a bucket with data. Slurm needs none."
  type        = list(string)
  default     = []
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
  description = "How many machines of which instance type; becomes /etc/citc/limits.yaml."
  type        = any
  default     = {}
}

variable "ansible" {
  description = "More variables of the playbooks, such as { cluster_monitoring = true } or { slurm_suspend_time = 300 }."
  type        = any
  default     = {}
}
