# The image of compute nodes on an OpenStack:
#   cd deploy/image/openstack && packer init . && packer build -var-file=site.pkrvars.hcl .
variable "cluster_id" {
  type        = string
  description = "The property `cluster` of the image: new machines of that cluster boot from the newest with it."
}

variable "cloud" {
  type        = string
  description = "Entry of clouds.yaml on this computer."
}

variable "flavor" {
  type = string
}

variable "network" {
  type        = string
  description = "Id of the network that the builder is in: that of deploy/terraform/openstack."
}

variable "floating_ip_network" {
  type        = string
  description = "The network that floating addresses come from."
}

variable "security_groups" {
  type        = list(string)
  description = "Groups that let SSH in from this computer: <cluster_id>-login."
}

variable "base_image_name" {
  type        = string
  description = "A plain image of the system that the management node has."
}

variable "ssh_username" {
  type    = string
  default = "debian"
}

variable "extra" {
  type        = string
  default     = ""
  description = "Commands of yours, run before the image is made anonymous."
}

source "openstack" "compute" {
  cloud               = var.cloud
  flavor              = var.flavor
  networks            = [var.network]
  floating_ip_network = var.floating_ip_network
  security_groups     = var.security_groups
  source_image_name   = var.base_image_name
  image_name          = "slurm-compute-${var.cluster_id}-v${formatdate("YYYYMMDDhhmmss", timestamp())}"
  ssh_username        = var.ssh_username
  metadata = {
    cluster = var.cluster_id
  }
}

build {
  sources = ["source.openstack.compute"]

  provisioner "shell" {
    inline = ["mkdir -p /tmp/deploy/image"]
  }

  # Not all of deploy/: Terraform's state beside it holds secrets.
  provisioner "file" {
    source      = "${path.root}/../../ansible"
    destination = "/tmp/deploy/"
  }

  provisioner "file" {
    source      = "${path.root}/../anonymise"
    destination = "/tmp/deploy/image/anonymise"
  }

  provisioner "shell" {
    environment_vars = ["EXTRA=${var.extra}"]
    execute_command  = "sudo env {{ .Vars }} bash {{ .Path }}"
    script           = "${path.root}/../prepare"
  }
}
