variables {
  cluster_id = "cheerful-macaw"
  repository = "https://git.example.org/slurm-elastic.git"
  startnode  = { csp = "oracle", region = "uk-london-1" }
}

run "names_and_tags" {
  command = plan

  assert {
    condition     = output.dns_label == "cheerfulmacaw"
    error_message = "a DNS label has letters and digits alone"
  }

  assert {
    condition     = output.management_tags == { cluster = "cheerful-macaw", nodetype = "mgmt" }
    error_message = "the management node must not have type=compute: stopnode --all would end it"
  }
}

run "a_long_name_is_cut_for_dns" {
  command = plan

  variables {
    cluster_id = "extraordinarily-cheerful-macaw"
  }

  assert {
    condition     = output.dns_label == "extraordinarily"
    error_message = "OCI takes at most 15 characters"
  }
}

run "startnode_yaml" {
  command = plan

  variables {
    availability_domain = "TnMx:UK-LONDON-1-AD-2"
  }

  assert {
    condition = yamldecode(output.startnode_yaml) == {
      csp            = "oracle"
      region         = "uk-london-1"
      cluster_id     = "cheerful-macaw"
      bootstrap_file = "/etc/citc/bootstrap.yaml"
      ad_root        = "TnMx:UK-LONDON-1-AD-"
    }
    error_message = "startnode.yaml: ${output.startnode_yaml}"
  }
}

run "monitoring_has_metrics" {
  command = plan

  variables {
    startnode = { csp = "oracle", elastic = { cooldown = "20s" } }
    ansible   = { cluster_monitoring = true }
  }

  assert {
    condition     = yamldecode(output.startnode_yaml).elastic == { cooldown = "20s", metrics = "/var/lib/prometheus/node-exporter/slurm-elastic.prom" }
    error_message = "reconcile writes no metrics: ${output.startnode_yaml}"
  }
}

run "user_data_has_everything" {
  command = plan

  variables {
    limits  = { "VM.Standard2.1" = { "1" = 4 } }
    ansible = { cluster_share = "10.1.0.9:/shared" }
  }

  assert {
    condition     = startswith(output.user_data, "#cloud-config\n")
    error_message = "cloud-init knows it by its first line"
  }

  assert {
    condition     = [for file in yamldecode(output.user_data).write_files : yamldecode(base64decode(file.content)) if file.path == "/etc/slurm-elastic/cluster.yml"][0].cluster_share == "10.1.0.9:/shared"
    error_message = "the playbook does not learn of the share"
  }

  assert {
    condition     = yamldecode([for file in yamldecode(output.user_data).write_files : yamldecode(base64decode(file.content)) if file.path == "/etc/slurm-elastic/cluster.yml"][0].cluster_limits)["VM.Standard2.1"]["1"] == 4
    error_message = "limits.yaml differs"
  }
}

run "a_bad_name_is_refused" {
  command = plan

  variables {
    cluster_id = "Cheerful_Macaw"
  }

  expect_failures = [var.cluster_id]
}

run "user_data_that_the_cloud_would_refuse" {
  command = plan

  variables {
    ansible = { much = join("", [for i in range(1000) : "0123456789012345678901234567890"]) }
  }

  expect_failures = [output.user_data]
}
