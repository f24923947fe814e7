# What needs no provider: names, tags, the files that the management node gets, and checks of what a person wrote.
locals {
  startnode = merge(
    var.startnode,
    {
      cluster_id     = var.cluster_id
      bootstrap_file = "/etc/citc/bootstrap.yaml"
    },
    # An availability domain's name is this and its number.
    var.availability_domain == "" ? {} : { ad_root = substr(var.availability_domain, 0, length(var.availability_domain) - 1) },
    # What reconcile writes for the Prometheus of the role `monitoring`.
    { for key in ["elastic"] : key => merge({ metrics = "/var/lib/prometheus/node-exporter/slurm-elastic.prom" }, try(var.startnode.elastic, {})) if try(tobool(var.ansible.cluster_monitoring), false) },
  )

  ansible = merge(
    var.ansible,
    {
      cluster_id         = var.cluster_id
      cluster_repository = var.repository
      cluster_branch     = var.branch
    },
    length(var.limits) == 0 ? {} : { cluster_limits = yamlencode(var.limits) },
  )

  user_data = templatefile("${path.module}/../../userdata/management", {
    variables  = base64encode(yamlencode(local.ansible))
    startnode  = base64encode(yamlencode(local.startnode))
    repository = var.repository
    branch     = var.branch
  })
}
