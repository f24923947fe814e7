variable "host" {
  description = "Address of the management node."
  type        = string
}

variable "user" {
  description = "User that logs in and may use sudo: opc on Oracle Linux, debian or ubuntu elsewhere."
  type        = string
}

variable "private_key_file" {
  description = "Private key to log in with; empty for the SSH agent."
  type        = string
  default     = ""
}

variable "package" {
  description = "Package of slurm-elastic on this computer, as packaging/deb makes it; empty if the management node fetches it."
  type        = string
  default     = ""
}

variable "package_name" {
  description = "Name of the package on the management node."
  type        = string
  default     = "slurm-elastic.deb"
}

variable "clouds_yaml" {
  description = "Content of clouds.yaml for the programs on the management node (OpenStack): one, which is not known before its credential is made; none elsewhere."
  type        = list(string)
  default     = []
  sensitive   = true
}
