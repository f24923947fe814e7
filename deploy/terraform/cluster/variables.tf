variable "cluster_id" {
  description = "Name of the cluster: in the tag `cluster` of every machine, in node names and in Slurm. Two clusters in one compartment or project need two names."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9]*(-[a-z0-9]+)*$", var.cluster_id)) && length(var.cluster_id) <= 30
    error_message = "cluster_id must begin with a lower-case letter and have only lower-case letters, digits and single hyphens, at most 30 characters."
  }
}

variable "repository" {
  description = "Git repository that machines fetch deploy/ansible from."
  type        = string
}

variable "branch" {
  description = "Branch, tag or commit of the repository."
  type        = string
  default     = "main"
}

variable "startnode" {
  description = "What the programs need to know of this cluster and its cloud: the content of startnode.yaml. cluster_id and bootstrap_file are added."
  type        = any
}

variable "ansible" {
  description = "Variables of the playbooks: cluster_share, cluster_network, cluster_package and others. cluster_id, cluster_repository and cluster_branch are added."
  type        = any
  default     = {}
}

variable "limits" {
  description = "How many machines of which kind: the content of limits.yaml (docs/configuration.md). Empty leaves it to the operator."
  type        = any
  default     = {}
}

variable "availability_domain" {
  description = "Name of the management node's availability domain on OCI, such as `TnMx:UK-LONDON-1-AD-1`; empty elsewhere."
  type        = string
  default     = ""
}
