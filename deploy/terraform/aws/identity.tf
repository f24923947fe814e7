# The management node may start and end machines, by being the machine that it is: no key on disk.
resource "aws_iam_role" "management" {
  name               = "slurm-${var.cluster_id}"
  description        = "Management node of the cluster ${var.cluster_id}"
  assume_role_policy = local.machines_may
  tags               = module.cluster.tags
}

resource "aws_iam_role_policy" "management" {
  name   = "machines"
  role   = aws_iam_role.management.id
  policy = jsonencode(local.management_policy)
}

resource "aws_iam_instance_profile" "management" {
  name = "slurm-${var.cluster_id}"
  role = aws_iam_role.management.name
  tags = module.cluster.tags
}

# What compute nodes may do: nothing, but for what a site adds.
resource "aws_iam_role" "compute" {
  name               = "slurm-${var.cluster_id}-compute"
  description        = "Compute nodes of the cluster ${var.cluster_id}"
  assume_role_policy = local.machines_may
  tags               = module.cluster.tags
}

resource "aws_iam_role_policy_attachment" "compute" {
  count = length(var.compute_policies)

  role       = aws_iam_role.compute.name
  policy_arn = var.compute_policies[count.index]
}

resource "aws_iam_instance_profile" "compute" {
  name = "slurm-${var.cluster_id}-compute"
  role = aws_iam_role.compute.name
  tags = module.cluster.tags
}

locals {
  machines_may = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Action = "sts:AssumeRole", Principal = { Service = "ec2.amazonaws.com" } }]
  })

  # The same as examples/aws/policy.json for this cluster: the placeholders are its name, and the role of its nodes.
  management_policy = jsondecode(replace(replace(
    file("${path.module}/../../../examples/aws/policy.json"),
    "CLUSTER_ID", var.cluster_id),
    "arn:aws:iam::ACCOUNT:role/COMPUTE_ROLE", aws_iam_role.compute.arn
  ))
}
