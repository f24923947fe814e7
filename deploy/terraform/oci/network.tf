resource "oci_core_vcn" "cluster" {
  compartment_id = var.compartment_ocid
  cidr_blocks    = [var.network_cidr]
  display_name   = var.cluster_id
  dns_label      = module.cluster.dns_label
  freeform_tags  = module.cluster.tags

  depends_on = [oci_core_compute_capacity_report.management]
}

resource "oci_core_internet_gateway" "cluster" {
  compartment_id = var.compartment_ocid
  vcn_id         = oci_core_vcn.cluster.id
  display_name   = var.cluster_id
  freeform_tags  = module.cluster.tags
}

resource "oci_core_route_table" "cluster" {
  compartment_id = var.compartment_ocid
  vcn_id         = oci_core_vcn.cluster.id
  display_name   = var.cluster_id
  freeform_tags  = module.cluster.tags

  route_rules {
    destination       = "0.0.0.0/0"
    destination_type  = "CIDR_BLOCK"
    network_entity_id = oci_core_internet_gateway.cluster.id
  }
}

resource "oci_core_security_list" "cluster" {
  compartment_id = var.compartment_ocid
  vcn_id         = oci_core_vcn.cluster.id
  display_name   = var.cluster_id
  freeform_tags  = module.cluster.tags

  egress_security_rules {
    destination = "0.0.0.0/0"
    protocol    = "all"
  }

  # SSH from where you are. 6 is TCP, 1 is ICMP.
  ingress_security_rules {
    source   = var.allowed_cidr
    protocol = "6"

    tcp_options {
      min = 22
      max = 22
    }
  }

  # Everything inside: Slurm, MPI on any port, and NFS.
  ingress_security_rules {
    source   = var.network_cidr
    protocol = "all"
  }

  # Packets that are too large for the way.
  ingress_security_rules {
    source   = "0.0.0.0/0"
    protocol = "1"

    icmp_options {
      type = 3
      code = 4
    }
  }
}

# One subnet over all availability domains.
resource "oci_core_subnet" "cluster" {
  compartment_id    = var.compartment_ocid
  vcn_id            = oci_core_vcn.cluster.id
  cidr_block        = cidrsubnet(var.network_cidr, 2, 0)
  display_name      = "Subnet"
  dns_label         = "subnet"
  route_table_id    = oci_core_route_table.cluster.id
  security_list_ids = [oci_core_security_list.cluster.id]
  freeform_tags     = module.cluster.tags
}
