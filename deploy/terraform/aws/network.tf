resource "aws_vpc" "cluster" {
  cidr_block           = var.network_cidr
  enable_dns_hostnames = true
  tags                 = merge(module.cluster.tags, { Name = var.cluster_id })
}

resource "aws_internet_gateway" "cluster" {
  vpc_id = aws_vpc.cluster.id
  tags   = merge(module.cluster.tags, { Name = var.cluster_id })
}

resource "aws_route_table" "cluster" {
  vpc_id = aws_vpc.cluster.id
  tags   = merge(module.cluster.tags, { Name = var.cluster_id })
}

resource "aws_route" "internet" {
  route_table_id         = aws_route_table.cluster.id
  destination_cidr_block = "0.0.0.0/0"
  gateway_id             = aws_internet_gateway.cluster.id
}

# One for each zone: a subnet of EC2 is in one zone.
resource "aws_subnet" "cluster" {
  count = length(var.zones)

  vpc_id            = aws_vpc.cluster.id
  availability_zone = var.zones[count.index]
  cidr_block        = cidrsubnet(var.network_cidr, 2, count.index)
  # Nodes fetch packages and playbooks, and there is no NAT gateway, which costs more than the addresses.
  map_public_ip_on_launch = true
  tags                    = merge(module.cluster.tags, { Name = "${var.cluster_id}-${var.zones[count.index]}" })
}

resource "aws_route_table_association" "cluster" {
  count = length(var.zones)

  subnet_id      = aws_subnet.cluster[count.index].id
  route_table_id = aws_route_table.cluster.id
}

# Of all machines: everything among themselves (Slurm, MPI on any port, NFS, EFA), and the way out.
resource "aws_security_group" "cluster" {
  name        = var.cluster_id
  description = "Machines of the cluster ${var.cluster_id}"
  vpc_id      = aws_vpc.cluster.id
  tags        = module.cluster.tags

  ingress {
    description = "everything inside"
    from_port   = 0
    to_port     = 0
    protocol    = "-1"
    self        = true
  }

  egress {
    description = "the way out"
    from_port   = 0
    to_port     = 0
    protocol    = "-1"
    cidr_blocks = ["0.0.0.0/0"]
  }

  # EFA takes only rules that name the group itself.
  egress {
    description = "EFA among machines"
    from_port   = 0
    to_port     = 0
    protocol    = "-1"
    self        = true
  }
}

# Of the management node alone: SSH from where you are.
resource "aws_security_group" "login" {
  name        = "${var.cluster_id}-login"
  description = "Management node of the cluster ${var.cluster_id}"
  vpc_id      = aws_vpc.cluster.id
  tags        = module.cluster.tags

  ingress {
    description = "SSH"
    from_port   = 22
    to_port     = 22
    protocol    = "tcp"
    cidr_blocks = [var.allowed_cidr]
  }
}
