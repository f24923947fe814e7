# The image of compute nodes on AWS:
#   cd deploy/image/aws && packer init . && packer build -var-file=site.pkrvars.hcl .
variable "cluster_id" {
  type        = string
  description = "The tag `cluster` of the image: new machines of that cluster boot from the newest with it."
}

variable "region" {
  type = string
}

variable "profile" {
  type        = string
  default     = ""
  description = "Profile of ~/.aws/config on this computer; empty for the environment's."
}

variable "subnet_id" {
  type        = string
  description = "A subnet that this computer reaches by SSH: that of deploy/terraform/aws."
}

variable "base_image_id" {
  type        = string
  description = "A plain image of the system that the management node has."
}

variable "ssh_username" {
  type    = string
  default = "ubuntu"
}

variable "instance_type" {
  type    = string
  default = "c7i.large"
}

variable "extra" {
  type        = string
  default     = ""
  description = "Commands of yours, run before the image is made anonymous."
}

source "amazon-ebs" "compute" {
  region                      = var.region
  profile                     = var.profile
  subnet_id                   = var.subnet_id
  associate_public_ip_address = true
  source_ami                  = var.base_image_id
  instance_type               = var.instance_type
  ami_name                    = "slurm-compute-${var.cluster_id}-v${formatdate("YYYYMMDDhhmmss", timestamp())}"
  ssh_username                = var.ssh_username
  tags = {
    cluster = var.cluster_id
  }
}

build {
  sources = ["source.amazon-ebs.compute"]

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
