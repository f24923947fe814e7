data "openstack_images_image_v2" "management" {
  name        = var.management_image
  most_recent = true
}

# Fails while planning, and names the key pair, if there is none of that name.
data "openstack_compute_keypair_v2" "operators" {
  name = var.keypair
}

data "openstack_compute_flavor_v2" "management" {
  name = var.management_flavor
}

module "cluster" {
  source = "../cluster"

  cluster_id = var.cluster_id
  repository = var.repository
  branch     = var.branch
  limits     = var.limits

  startnode = {
    csp             = "openstack"
    cloud           = "openstack"
    networks        = [openstack_networking_network_v2.cluster.name]
    security_groups = [openstack_networking_secgroup_v2.cluster.name]
    keypair         = data.openstack_compute_keypair_v2.operators.name
    image_id        = var.compute_image_id != "" ? var.compute_image_id : data.openstack_images_image_v2.management.id
    hosts_file      = "/etc/hosts"
  }

  ansible = merge(
    {
      # The management node exports its volume itself.
      cluster_share        = ""
      cluster_share_device = "/dev/disk/by-id/virtio-${substr(openstack_blockstorage_volume_v3.shared.id, 0, 20)}"
      cluster_network      = var.network_cidr
    },
    var.ansible,
  )
}

resource "openstack_compute_instance_v2" "management" {
  name            = module.cluster.management_name
  flavor_id       = data.openstack_compute_flavor_v2.management.id
  image_id        = data.openstack_images_image_v2.management.id
  key_pair        = data.openstack_compute_keypair_v2.operators.name
  security_groups = [openstack_networking_secgroup_v2.cluster.name, openstack_networking_secgroup_v2.login.name]
  user_data       = module.cluster.user_data
  metadata        = module.cluster.management_tags

  network {
    uuid = openstack_networking_network_v2.cluster.id
  }

  # A newer image or other user data is no reason to lose the cluster; `configure-management` brings in changes.
  lifecycle {
    ignore_changes = [image_id, user_data]
  }

  # Without a subnet there is no address to give.
  depends_on = [openstack_networking_subnet_v2.cluster]
}

data "openstack_networking_port_v2" "management" {
  device_id  = openstack_compute_instance_v2.management.id
  network_id = openstack_networking_network_v2.cluster.id
}

resource "openstack_networking_floatingip_v2" "management" {
  pool = var.external_network
}

resource "openstack_networking_floatingip_associate_v2" "management" {
  floating_ip = openstack_networking_floatingip_v2.management.address
  port_id     = data.openstack_networking_port_v2.management.id

  depends_on = [openstack_networking_router_interface_v2.cluster]
}

resource "openstack_blockstorage_volume_v3" "shared" {
  name     = "${var.cluster_id}-shared"
  size     = var.share_gb
  metadata = { cluster = var.cluster_id }
}

resource "openstack_compute_volume_attach_v2" "shared" {
  instance_id = openstack_compute_instance_v2.management.id
  volume_id   = openstack_blockstorage_volume_v3.shared.id
}

# What the programs on the management node call the cloud with: no more than this user's role, and no way to make others.
resource "openstack_identity_application_credential_v3" "management" {
  name        = "slurm-${var.cluster_id}"
  description = "Management node of the cluster ${var.cluster_id}"
}

module "management" {
  source = "../management"

  host             = openstack_networking_floatingip_associate_v2.management.floating_ip
  user             = var.management_user
  private_key_file = var.ssh_private_key_file
  package          = var.package

  clouds_yaml = [yamlencode({
    clouds = {
      openstack = {
        auth_type   = "v3applicationcredential"
        region_name = var.region
        auth = {
          auth_url                      = var.auth_url
          application_credential_id     = openstack_identity_application_credential_v3.management.id
          application_credential_secret = openstack_identity_application_credential_v3.management.secret
        }
      }
    }
  })]

  # Destroyed before these, which the destroy hook needs: its credential, the management node and the way to it.
  depends_on = [
    openstack_identity_application_credential_v3.management,
    openstack_compute_volume_attach_v2.shared,
    openstack_networking_router_interface_v2.cluster,
    openstack_networking_secgroup_rule_v2.ssh,
    openstack_networking_secgroup_rule_v2.inside,
  ]
}
