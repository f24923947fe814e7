data "oci_identity_availability_domain" "management" {
  compartment_id = var.tenancy_ocid
  ad_number      = var.management_availability_domain
}

data "oci_core_images" "ubuntu" {
  compartment_id           = var.tenancy_ocid
  operating_system         = "Canonical Ubuntu"
  operating_system_version = "24.04"
  shape                    = var.management_shape
  sort_by                  = "TIMECREATED"
  sort_order               = "DESC"
}

# Asks whether there is room before anything else is made: the network and the file system wait for it.
resource "oci_core_compute_capacity_report" "management" {
  compartment_id      = var.tenancy_ocid
  availability_domain = local.availability_domain

  shape_availabilities {
    instance_shape = var.management_shape

    dynamic "instance_shape_config" {
      for_each = local.flexible ? [1] : []

      content {
        ocpus         = var.management_ocpus
        memory_in_gbs = var.management_memory
      }
    }
  }

  lifecycle {
    postcondition {
      condition     = self.shape_availabilities[0].availability_status == "AVAILABLE"
      error_message = "No capacity for the management node: ${var.management_shape} is ${self.shape_availabilities[0].availability_status} in ${local.availability_domain}. Set management_shape or management_availability_domain in terraform.tfvars to another; or ask again later with `terraform apply -replace=oci_core_compute_capacity_report.management`."
    }
  }
}

locals {
  availability_domain = data.oci_identity_availability_domain.management.name
  flexible            = endswith(var.management_shape, ".Flex")
  management_image    = var.management_image_ocid != "" ? var.management_image_ocid : data.oci_core_images.ubuntu.images[0].id
  share               = "${oci_file_storage_mount_target.shared.ip_address}:${oci_file_storage_export.shared.path}"
}

module "cluster" {
  source = "../cluster"

  cluster_id          = var.cluster_id
  repository          = var.repository
  branch              = var.branch
  limits              = var.limits
  availability_domain = local.availability_domain

  startnode = {
    csp            = "oracle"
    region         = var.region
    compartment_id = var.compartment_ocid
    vcn_id         = oci_core_vcn.cluster.id
    subnet_id      = oci_core_subnet.cluster.id
    image_id       = var.compute_image_ocid != "" ? var.compute_image_ocid : local.management_image
    # The management node itself, by the dynamic group and the policy: no key on disk.
    auth = "instance_principal"
    # The playbook writes it.
    ssh_keys_file = "/etc/citc/authorized_keys"
  }

  ansible = merge(
    {
      cluster_share    = local.share
      cluster_network  = var.network_cidr
      cluster_ssh_keys = var.ssh_public_key
    },
    var.ansible,
  )
}

resource "oci_core_instance" "management" {
  compartment_id      = var.compartment_ocid
  availability_domain = local.availability_domain
  display_name        = module.cluster.management_name
  shape               = var.management_shape
  freeform_tags       = module.cluster.management_tags

  dynamic "shape_config" {
    for_each = local.flexible ? [1] : []

    content {
      ocpus         = var.management_ocpus
      memory_in_gbs = var.management_memory
    }
  }

  source_details {
    source_type = "image"
    source_id   = local.management_image
  }

  create_vnic_details {
    subnet_id        = oci_core_subnet.cluster.id
    hostname_label   = module.cluster.management_name
    assign_public_ip = true
  }

  metadata = {
    ssh_authorized_keys = var.ssh_public_key
    user_data           = base64encode(module.cluster.user_data)
  }

  # A newer image or other user data is no reason to lose the cluster; `configure-management` brings in changes.
  lifecycle {
    ignore_changes = [source_details, metadata]
  }
}

module "management" {
  source = "../management"

  host             = oci_core_instance.management.public_ip
  user             = var.management_user
  private_key_file = var.ssh_private_key_file
  package          = var.package

  # Destroyed before these: without the policy the management node may end no machine, without the share and the way out it
  # is not reached or reads no slurm.conf.
  depends_on = [
    oci_identity_policy.management,
    oci_file_storage_export.shared,
    oci_core_route_table.cluster,
    oci_core_security_list.cluster,
  ]
}
