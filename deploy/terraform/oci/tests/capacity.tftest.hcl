# A cloud without room for the management node: one error, and nothing but the question was made.
mock_provider "oci" {
  mock_data "oci_identity_availability_domain" {
    defaults = { name = "TnMx:UK-LONDON-1-AD-1" }
  }

  mock_data "oci_core_images" {
    defaults = { images = [{ id = "ocid1.image.oc1..newest" }] }
  }

  mock_resource "oci_core_compute_capacity_report" {
    defaults = { shape_availabilities = { availability_status = "OUT_OF_HOST_CAPACITY" } }
  }
}

override_module {
  target = module.management
}

variables {
  tenancy_ocid     = "ocid1.tenancy.oc1..t"
  compartment_ocid = "ocid1.compartment.oc1..c"
  region           = "uk-london-1"
  cluster_id       = "cheerful-macaw"
  ssh_public_key   = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFr0rF0rF0rF0rF0rF0rF0rF0rF0rF0rF0rF0rF0rF0r you@example.org"
  allowed_cidr     = "192.0.2.7/32"
  package          = ""
  repository       = "https://git.example.org/slurm-elastic.git"
}

run "no_capacity_for_the_management_shape" {
  expect_failures = [oci_core_compute_capacity_report.management]
}
