# The image of compute nodes on OCI:
#   cd deploy/image/oci && packer init . && packer build -var-file=site.pkrvars.hcl .
variable "cluster_id" {
  type        = string
  description = "The tag `cluster` of the image: new machines of that cluster boot from the newest with it."
}

variable "compartment_ocid" {
  type = string
}

variable "availability_domain" {
  type        = string
  description = "Whole name, such as TnMx:UK-LONDON-1-AD-1."
}

variable "subnet_ocid" {
  type        = string
  description = "A subnet that this computer reaches by SSH: that of deploy/terraform/oci."
}

variable "base_image_ocid" {
  type        = string
  description = "A plain image of the system that the management node has."
}

variable "ssh_username" {
  type    = string
  default = "ubuntu"
}

variable "shape" {
  type    = string
  default = "VM.Standard.E5.Flex"
}

variable "extra" {
  type        = string
  default     = ""
  description = "Commands of yours, run before the image is made anonymous."
}

source "oracle-oci" "compute" {
  compartment_ocid    = var.compartment_ocid
  availability_domain = var.availability_domain
  subnet_ocid         = var.subnet_ocid
  base_image_ocid     = var.base_image_ocid
  shape               = var.shape
  shape_config {
    ocpus         = 2
    memory_in_gbs = 16
  }
  image_name   = "slurm-compute-${var.cluster_id}-v${formatdate("YYYYMMDDhhmmss", timestamp())}"
  ssh_username = var.ssh_username
  tags = {
    cluster = var.cluster_id
  }
}

build {
  sources = ["source.oracle-oci.compute"]

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
