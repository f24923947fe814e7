# The shared file system: NFS, in all zones.
resource "aws_efs_file_system" "shared" {
  creation_token  = var.cluster_id
  encrypted       = true
  throughput_mode = "elastic"
  tags            = merge(module.cluster.tags, { Name = var.cluster_id })
}

resource "aws_efs_mount_target" "shared" {
  count = length(var.zones)

  file_system_id  = aws_efs_file_system.shared.id
  subnet_id       = aws_subnet.cluster[count.index].id
  security_groups = [aws_security_group.cluster.id]
}
