data "openstack_networking_network_v2" "external" {
  name     = var.external_network
  external = true
}

resource "openstack_networking_network_v2" "cluster" {
  name           = var.cluster_id
  admin_state_up = true
}

resource "openstack_networking_subnet_v2" "cluster" {
  name            = var.cluster_id
  network_id      = openstack_networking_network_v2.cluster.id
  cidr            = var.network_cidr
  dns_nameservers = var.dns_nameservers
}

resource "openstack_networking_router_v2" "cluster" {
  name                = var.cluster_id
  external_network_id = data.openstack_networking_network_v2.external.id
}

resource "openstack_networking_router_interface_v2" "cluster" {
  router_id = openstack_networking_router_v2.cluster.id
  subnet_id = openstack_networking_subnet_v2.cluster.id
}

# Of all machines: everything among themselves. Slurm, MPI on any port, and NFS.
resource "openstack_networking_secgroup_v2" "cluster" {
  name        = var.cluster_id
  description = "Machines of the cluster ${var.cluster_id}"
}

resource "openstack_networking_secgroup_rule_v2" "inside" {
  direction         = "ingress"
  ethertype         = "IPv4"
  remote_group_id   = openstack_networking_secgroup_v2.cluster.id
  security_group_id = openstack_networking_secgroup_v2.cluster.id
}

# Of the management node alone: SSH from where you are.
resource "openstack_networking_secgroup_v2" "login" {
  name        = "${var.cluster_id}-login"
  description = "Management node of the cluster ${var.cluster_id}"
}

resource "openstack_networking_secgroup_rule_v2" "ssh" {
  direction         = "ingress"
  ethertype         = "IPv4"
  protocol          = "tcp"
  port_range_min    = 22
  port_range_max    = 22
  remote_ip_prefix  = var.allowed_cidr
  security_group_id = openstack_networking_secgroup_v2.login.id
}
