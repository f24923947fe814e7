variable "tenancy_ocid" {
  description = "OCID of the tenancy: console, profile menu, Tenancy."
  type        = string
}

variable "compartment_ocid" {
  description = "OCID of the compartment that everything goes into, but for the dynamic group and the policy, which belong to the tenancy."
  type        = string
}

variable "region" {
  description = "Region, such as uk-london-1."
  type        = string
}

variable "profile" {
  description = "Profile of ~/.oci/config on this computer, by which Terraform calls the cloud."
  type        = string
  default     = "DEFAULT"
}

variable "cluster_id" {
  description = "Name of the cluster: lower-case letters, digits and hyphens. In the tag `cluster` of every machine."
  type        = string
}

variable "management_availability_domain" {
  description = "Number of the availability domain of the management node and of the file system: 1, 2 or 3."
  type        = number
  default     = 1
}

variable "management_shape" {
  description = "Shape of the management node. It has to be x86_64, or the package has to be built for arm64."
  type        = string
  default     = "VM.Standard.E5.Flex"
}

variable "management_ocpus" {
  description = "OCPUs of the management node, where its shape is flexible."
  type        = number
  default     = 2
}

variable "management_memory" {
  description = "Gigabytes of memory of the management node, where its shape is flexible."
  type        = number
  default     = 16
}

variable "management_image_ocid" {
  description = "Image of the management node: Debian 12 (import it: OCI has none), Ubuntu 22.04 or newer, or Oracle Linux 9. Empty takes Oracle's newest Ubuntu 24.04 for the shape."
  type        = string
  default     = ""
}

variable "management_user" {
  description = "User that logs in: ubuntu, debian or opc, as the image has it."
  type        = string
  default     = "ubuntu"
}

variable "compute_image_ocid" {
  description = "Image of compute nodes, as deploy/image makes it. Empty takes that of the management node: each node then configures itself when it boots, which takes minutes."
  type        = string
  default     = ""
}

variable "ssh_public_key" {
  description = "Public key that may log in, as one line."
  type        = string

  validation {
    condition     = can(regex("^(ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI[A-Za-z0-9+/]{43}|(ssh-rsa|ecdsa-[^ ]+|sk-[^ ]+) AAAA[A-Za-z0-9+/]{80,}={0,2})( .*)?\\s*$", var.ssh_public_key))
    error_message = "ssh_public_key must be the whole line of a public key, such as `ssh-ed25519 AAAA… you@example.org`: the content of ~/.ssh/id_ed25519.pub, not its path."
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
  description = "How many machines of which kind, by availability domain; becomes /etc/citc/limits.yaml."
  type        = any
  default     = {}
}

variable "ansible" {
  description = "More variables of the playbooks, such as { cluster_monitoring = true } or { slurm_suspend_time = 300 }."
  type        = any
  default     = {}
}
