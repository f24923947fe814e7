# Plans and applies with a mock of the provider: deploy/test gives it the provider's schema.
mock_provider "openstack" {
  mock_resource "openstack_blockstorage_volume_v3" {
    defaults = { id = "0f3b8f0e-5d7c-4c53-9f43-0123456789ab" }
  }

  mock_resource "openstack_networking_floatingip_v2" {
    defaults = { address = "192.0.2.20" }
  }

  mock_resource "openstack_identity_application_credential_v3" {
    defaults = { id = "credential", secret = "very-secret" }
  }
}

override_module {
  target = module.management
}

variables {
  cloud             = "openstack"
  auth_url          = "https://keystone.example.org:5000/v3"
  cluster_id        = "cheerful-macaw"
  external_network  = "public"
  management_flavor = "m1.medium"
  management_image  = "debian-12"
  keypair           = "operators"
  allowed_cidr      = "192.0.2.7/32"
  package           = ""
  repository        = "https://git.example.org/slurm-elastic.git"
  limits            = { "m1.large" = 10 }
}

run "everything_is_made" {
  assert {
    condition     = output.ssh == "ssh debian@192.0.2.20"
    error_message = "the ssh line: ${output.ssh}"
  }

  # Nova shows 20 characters of a volume's id as the serial number of the disk.
  assert {
    condition     = strcontains(base64decode([for file in yamldecode(openstack_compute_instance_v2.management.user_data).write_files : file.content if file.path == "/etc/slurm-elastic/cluster.yml"][0]), "/dev/disk/by-id/virtio-0f3b8f0e-5d7c-4c53-9\"")
    error_message = "the management node does not learn which volume to export"
  }

  assert {
    condition     = strcontains(base64decode([for file in yamldecode(openstack_compute_instance_v2.management.user_data).write_files : file.content if file.path == "/etc/citc/startnode.yaml"][0]), "\"keypair\": \"operators\"")
    error_message = "startnode.yaml has no key pair"
  }

  assert {
    condition     = !strcontains(openstack_compute_instance_v2.management.user_data, "very-secret") && !strcontains(openstack_compute_instance_v2.management.user_data, base64encode("very-secret"))
    error_message = "every user of the machine can read its user data"
  }
}

run "an_address_is_no_range" {
  command = plan

  variables {
    allowed_cidr = "192.0.2.7"
  }

  expect_failures = [var.allowed_cidr]
}
