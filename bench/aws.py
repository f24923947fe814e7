"""A thousand nodes on moto's server: ours, and beside it ParallelCluster's slurm_resume; see bench/run aws.

Both run on one slurmctld and one server behind one proxy, which counts their requests. What slurm_resume does not measure, as
waiting for instances to run and giving Slurm's nodes back, ours does too. User and system time have all that a program calls.
"""

import datetime
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import programs

NODES = 1000
ROOT = programs.ROOT
# The targets for a start: requests, milliseconds of CPU a machine, megabytes.
REQUESTS, CPU, MEMORY = 30, 2.0, 30
THEIRS = f"q1-dy-cr1-[1-{NODES}]"


class Bed(programs.Bed):
    """A slurmctld, and moto's server behind a proxy."""

    def __init__(self, folder, venv):
        super().__init__(folder, NODES)
        self.hosts = f"bench-t3-small-[0001-{NODES:04}]"
        self.venv = pathlib.Path(venv)
        self.node_lines = "".join(
            f"NodeName={hosts} State=CLOUD CPUs=2 RealMemory=1300 Features=shape=t3.small\n" for hosts in (self.hosts, THEIRS)
        )

    def cloud(self):
        directory = self.folder / "cloud"
        serve = [str(ROOT / "tests" / "moto" / "serve"), str(directory)]
        self.moto = subprocess.Popen(serve, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.children.append(self.moto)
        to = self.moto.stdout.readline().strip() or sys.exit("aws: moto's server does not come up")
        self.facts = json.loads((directory / "cloud.json").read_text())
        self.start(programs.built("ec2-proxy"), "--to", to, "--state", self.folder / "proxy")
        endpoint = self.folder / "proxy" / "endpoint"
        self.endpoint = programs.until("ec2-proxy", lambda: endpoint.exists() and endpoint.read_text().strip())

    def boto3(self, call, service="ec2", **arguments):
        """What boto3 answers as the administrator of the account."""
        self.moto.stdin.write(json.dumps({"call": call, "service": service, "with": arguments}) + "\n")
        self.moto.stdin.flush()
        said = json.loads(self.moto.stdout.readline())
        return said["answer"] if "answer" in said else sys.exit(f"aws: {call}: {said['error']}")

    def live(self):
        states = [{"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]}]
        return [one["InstanceId"] for one in self.boto3("describe_instances", Filters=states)]

    def environment(self):
        aws = self.folder / "cloud" / "aws"
        return {"AWS_CONFIG_FILE": str(aws / "config"), "AWS_SHARED_CREDENTIALS_FILE": str(aws / "credentials")}

    def config(self, endpoint):
        path, facts = self.folder / "startnode.yaml", self.facts
        path.write_text(
            f"csp: aws\nregion: {facts['region']}\ncluster_id: bench\nendpoint: {endpoint}\n"
            f"subnets: {json.dumps(facts['subnets'])}\nsecurity_groups: [{facts['security_group']}]\nkeypair: key-1\n"
            f"image_id: {facts['images']['image-1']}\nslurm_conf: {self.folder}/etc/slurm.conf\nslurm_bin: {self.slurm}/bin\n"
            f"elastic: {{state_dir: {self.folder}/elastic, log: {self.folder}/log}}\n")
        return str(path)

    def parallelcluster(self):
        """The files and resources that slurm_resume needs; gives the environment to run it in."""
        here, facts = self.folder, self.facts
        tags = [{"ResourceType": "instance", "Tags": [{"Key": "parallelcluster:cluster-name", "Value": "bench"}]}]
        self.boto3("create_launch_template", LaunchTemplateName="bench-q1-cr1", LaunchTemplateData={
            "ImageId": facts["images"]["image-1"], "InstanceType": "t3.small", "KeyName": "key-1",
            "NetworkInterfaces": [{"DeviceIndex": 0, "SubnetId": facts["subnets"]["eu-west-1a"], "Groups": [facts["security_group"]]}],
            "TagSpecifications": tags})
        # moto takes no interface of a template.
        overrides = {"q1": {"cr1": {"SubnetId": facts["subnets"]["eu-west-1a"], "SecurityGroupIds": [facts["security_group"]]}}}
        self.boto3("create_table", service="dynamodb", TableName="bench", BillingMode="PAY_PER_REQUEST",
                   KeySchema=[{"AttributeName": "Id", "KeyType": "HASH"}],
                   AttributeDefinitions=[{"AttributeName": "Id", "AttributeType": "S"}])
        files = {
            "fleet.json": {"q1": {"cr1": {"Api": "run-instances", "CapacityType": "on-demand", "Instances": [{"InstanceType": "t3.small"}]}}},
            "overrides.json": overrides,
            "resume.json": {"jobs": [{"job_id": 1, "nodes_alloc": THEIRS, "nodes_resume": THEIRS, "oversubscribe": "NO", "extra": None, "features": None}]},
        }
        for name, content in files.items():
            (here / name).write_text(json.dumps(content))
        (here / "heartbeat").write_text(datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f%z"))
        (here / "resume.conf").write_text(
            f"[slurm_resume]\nregion = {facts['region']}\ncluster_name = bench\ndynamodb_table = bench\n"
            f"head_node_private_ip = 127.0.0.1\nhead_node_hostname = localhost\nfleet_config_file = {here}/fleet.json\n"
            f"run_instances_overrides = {here}/overrides.json\nclustermgtd_heartbeat_file_path = {here}/heartbeat\n")
        # It calls scontrol by sudo, which a root has no need of.
        (here / "bin").mkdir()
        (here / "bin" / "sudo").write_text('#!/bin/sh\nexec "$@"\n')
        (here / "bin" / "sudo").chmod(0o755)
        return self.environment() | {
            "AWS_ENDPOINT_URL": self.endpoint, "CONFIG_FILE": f"{here}/resume.conf", "SLURM_RESUME_FILE": f"{here}/resume.json",
            "SLURM_BINARIES_DIR": f"{self.slurm}/bin", "SLURM_CONF": f"{here}/etc/slurm.conf", "PATH": f"{here}/bin:/usr/bin:/bin"}


def measure(bed, what, call, environment):
    """Runs a program that has to end well: wall, CPU, memory and requests."""
    bed.asked()
    cpu, begun = programs.children(), time.perf_counter()
    code, memory = programs.spent(subprocess.Popen(call, env=environment, stdout=subprocess.DEVNULL))
    wall, cpu = time.perf_counter() - begun, programs.children() - cpu
    if code != 0:
        sys.exit(f"aws: {what} ended with {code}; see {bed.folder}/log")
    counts = bed.asked()
    print(f"{what:>42} {wall:7.1f} s, {cpu * 1000 / NODES:6.2f} ms of CPU a machine, {memory:6.1f} MB, {sum(counts.values())} requests: {counts}")
    return {"wall": wall, "CPU": cpu, "memory": memory, "requests": sum(counts.values())}


def theirs(bed):
    """slurm_resume, unchanged; its log is where it has to be, in a mount namespace of its own."""
    script = "mount -t tmpfs log /var/log && mkdir /var/log/parallelcluster && exec \"$@\""
    call = ["unshare", "--mount", "sh", "-c", script, "sh", str(bed.venv / "bin" / "slurm_resume"), THEIRS]
    figures = measure(bed, "ParallelCluster's slurm_resume", call, bed.parallelcluster())
    started = bed.live()
    if len(started) != NODES:
        sys.exit(f"aws: slurm_resume has started {len(started)} instances, and not {NODES}")
    bed.boto3("terminate_instances", InstanceIds=started)
    return figures


def ours(bed):
    config = ["--config", bed.config(bed.endpoint)]
    start = measure(bed, "startnode", [programs.program("startnode"), *config, bed.hosts], bed.environment())
    started = len(bed.live())
    if started != NODES:
        sys.exit(f"aws: startnode has started {started} instances, and not {NODES}")
    again = measure(bed, "startnode, when all run", [programs.program("startnode"), *config, bed.hosts], bed.environment())
    stop = measure(bed, "stopnode", [programs.program("stopnode"), *config, "--now", bed.hosts], bed.environment())
    if bed.live():
        sys.exit(f"aws: stopnode has left {len(bed.live())} instances")
    return start, again, stop


def main(venv):
    with Bed(programs.folder(), venv) as bed:
        other = theirs(bed)
        start, _, stop = ours(bed)
    print()
    programs.bar("startnode and stopnode: requests", start["requests"] + stop["requests"], "", REQUESTS)
    programs.bar("startnode: CPU a machine", start["CPU"] * 1000 / NODES, "ms", CPU)
    programs.bar("startnode: memory", start["memory"], "MB", MEMORY)
    print()
    for name, value in start.items():
        print(f"{name:>42} {other[name] / value:8.1f} times ours: ParallelCluster's slurm_resume")
    print(f"\n{programs.missed} bars missed")
    return programs.missed


if __name__ == "__main__":
    if os.geteuid() != 0 or not shutil.which("unshare"):
        sys.exit("aws: needs root and util-linux, since slurm_resume writes to /var/log")
    sys.exit(1 if main(sys.argv[1]) else 0)
