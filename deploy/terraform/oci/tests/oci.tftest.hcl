# Plans and applies with a mock of the provider: deploy/test gives it the provider's schema.
mock_provider "oci" {
  mock_data "oci_identity_availability_domain" {
    defaults = { name = "TnMx:UK-LONDON-1-AD-1" }
  }

  mock_data "oci_core_images" {
    defaults = { images = [{ id = "ocid1.image.oc1..newest" }] }
  }

  mock_resource "oci_core_compute_capacity_report" {
    defaults = { shape_availabilities = { availability_status = "AVAILABLE" } }
  }

  mock_resource "oci_core_instance" {
    defaults = { id = "ocid1.instance.oc1..mgmt", public_ip = "192.0.2.20" }
  }

  mock_resource "oci_file_storage_mount_target" {
    defaults = { ip_address = "10.1.0.9" }
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
  limits           = { "VM.Standard.E5.Flex.4.32" = { "1" = 10 } }
}

run "everything_is_made" {
  assert {
    condition     = output.ssh == "ssh ubuntu@192.0.2.20"
    error_message = "the ssh line: ${output.ssh}"
  }

  assert {
    condition     = strcontains(base64decode([for file in yamldecode(base64decode(oci_core_instance.management.metadata["user_data"])).write_files : file.content if file.path == "/etc/slurm-elastic/cluster.yml"][0]), "\"10.1.0.9:/shared\"")
    error_message = "the management node does not learn where the share is"
  }

  assert {
    condition     = strcontains(base64decode([for file in yamldecode(base64decode(oci_core_instance.management.metadata["user_data"])).write_files : file.content if file.path == "/etc/citc/startnode.yaml"][0]), "\"ad_root\": \"TnMx:UK-LONDON-1-AD-\"")
    error_message = "startnode.yaml has no availability domains"
  }

  assert {
    condition     = strcontains(base64decode([for file in yamldecode(base64decode(oci_core_instance.management.metadata["user_data"])).write_files : file.content if file.path == "/etc/citc/startnode.yaml"][0]), "\"image_id\": \"ocid1.image.oc1..newest\"")
    error_message = "without a compute image nodes do not boot that of the management node"
  }

  assert {
    condition     = yamldecode(base64decode([for file in yamldecode(base64decode(oci_core_instance.management.metadata["user_data"])).write_files : file.content if file.path == "/etc/slurm-elastic/cluster.yml"][0])).cluster_ssh_keys == var.ssh_public_key
    error_message = "nobody may log in to compute nodes"
  }

  assert {
    condition     = oci_identity_dynamic_group.management.matching_rule == "instance.id = 'ocid1.instance.oc1..mgmt'"
    error_message = "the dynamic group is not that of the management node"
  }

  assert {
    condition     = alltrue([for statement in oci_identity_policy.management.statements : strcontains(statement, "dynamic-group slurm-cheerful-macaw ")])
    error_message = "a statement of the policy is not about the dynamic group"
  }
}

run "a_path_is_no_public_key" {
  command = plan

  variables {
    ssh_public_key = "~/.ssh/id_ed25519.pub"
  }

  expect_failures = [var.ssh_public_key]
}

run "half_a_public_key_is_refused" {
  command = plan

  variables {
    ssh_public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFr0rF0rF0rF0rF0"
  }

  expect_failures = [var.ssh_public_key]
}

run "an_ecdsa_key_is_a_key" {
  command = plan

  variables {
    ssh_public_key = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBKIIyCDZBjnsoIprlDJhcY0y64kxSfAn1yI+Ba2RjDN/dhrvE813vM47GryLKUTg0JzVgksYhALr6td8tVKj9eg= you@example.org"
  }
}

run "an_address_is_no_range" {
  command = plan

  variables {
    allowed_cidr = "192.0.2.7"
  }

  expect_failures = [var.allowed_cidr]
}
