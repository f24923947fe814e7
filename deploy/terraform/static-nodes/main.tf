# An example for nodes that Terraform makes and Slurm rebuilds (StackHPC's ignore_image_changes): a new image in the variable
# changes no running node; rebuild-via-slurm.yml gives it to each when its jobs are done. Copy it, and give it the network and
# the security group of deploy/terraform/openstack.
terraform {
  required_version = ">= 1.5"

  required_providers {
    openstack = {
      source  = "terraform-provider-openstack/openstack"
      version = ">= 1.53"
    }
  }
}

variable "nodes" {
  description = "Names of the nodes, as slurm.conf has them."
  type        = set(string)
}

variable "image_id" {
  description = "Image that nodes should have. Running ones keep theirs until they are rebuilt."
  type        = string
}

variable "ignore_image_changes" {
  description = "True to leave new images to Slurm. To switch it makes the nodes anew, once: they are another resource then."
  type        = bool
  default     = true
}

variable "flavor" {
  description = "Flavor of the nodes, by name."
  type        = string
}

variable "keypair" {
  description = "Key pair of the nodes, by name."
  type        = string
}

variable "network" {
  description = "Name of the cluster's network."
  type        = string
}

variable "security_group" {
  description = "Name of the cluster's security group."
  type        = string
}

variable "user_data" {
  description = "User data of compute nodes: /etc/citc/bootstrap.yaml of the management node."
  type        = string
}

resource "openstack_compute_instance_v2" "compute" {
  for_each = var.ignore_image_changes ? [] : var.nodes

  name            = each.key
  image_id        = var.image_id
  flavor_name     = var.flavor
  key_pair        = var.keypair
  security_groups = [var.security_group]
  user_data       = var.user_data

  network {
    name = var.network
  }
}

resource "openstack_compute_instance_v2" "compute_fixed_image" {
  for_each = var.ignore_image_changes ? var.nodes : []

  name            = each.key
  image_id        = var.image_id
  flavor_name     = var.flavor
  key_pair        = var.keypair
  security_groups = [var.security_group]
  user_data       = var.user_data

  network {
    name = var.network
  }

  lifecycle {
    ignore_changes = [image_id]
  }
}

# Which image each should have: files for /etc/slurm/reboot_vars on the management node, which `rebuild` reads.
output "reboot_vars" {
  description = "Content of /etc/slurm/reboot_vars/<node>.yml, by node."
  value = {
    for name, server in merge(openstack_compute_instance_v2.compute, openstack_compute_instance_v2.compute_fixed_image) :
    name => yamlencode({ image_id = var.image_id, instance_id = server.id })
  }
}
