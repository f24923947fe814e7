resource "oci_file_storage_file_system" "shared" {
  compartment_id      = var.compartment_ocid
  availability_domain = local.availability_domain
  display_name        = var.cluster_id
  freeform_tags       = module.cluster.tags

  depends_on = [oci_core_compute_capacity_report.management]
}

resource "oci_file_storage_mount_target" "shared" {
  compartment_id      = var.compartment_ocid
  availability_domain = local.availability_domain
  subnet_id           = oci_core_subnet.cluster.id
  display_name        = var.cluster_id
  hostname_label      = "fileserver"
  freeform_tags       = module.cluster.tags
}

resource "oci_file_storage_export" "shared" {
  export_set_id  = oci_file_storage_mount_target.shared.export_set_id
  file_system_id = oci_file_storage_file_system.shared.id
  path           = "/shared"

  export_options {
    source          = var.network_cidr
    access          = "READ_WRITE"
    identity_squash = "NONE"
  }
}
