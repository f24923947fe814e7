"""Size, start-up and memory of the programs; see bench/programs, which builds them and calls this."""

import json
import os
import pathlib
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUNS = 21
NODES = 100
MANY = 3000

missed = 0


def bar(name, value, unit, most):
    global missed
    met = value <= most
    missed += not met
    print(f"{name:>42} {value:8.1f} {unit:<3} bar {most:g} {'met' if met else 'MISSED'}")


def cache():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(os.environ.get("SLURM_ELASTIC_CACHE") or f"{home}/slurm-elastic")


def built(name):
    """The path of an executable that cargo has built."""
    return str(pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / name)


def program(name):
    """The path of our executable by one of its names."""
    folder = pathlib.Path(built("programs"))
    folder.mkdir(exist_ok=True)
    link = folder / name
    if not link.is_symlink():
        link.symlink_to(built("slurm-elastic"))
    return str(link)


def spent(process):
    """Waits for a process: exit code and peak memory in MB, as last seen before it ended.

    What wait4 tells would not do: it counts the memory that this Python had when it began the process.
    """
    memory = 0
    while process.poll() is None:
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            continue
        lines = (line.split() for line in status.splitlines())
        memory = max([memory, *(int(line[1]) / 1024 for line in lines if line[0] == "VmHWM:")])
        time.sleep(0.002)
    return process.returncode, memory


def until(what, look):
    """Polls until `look` gives something, or says that `what` never came."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    sys.exit(f"programs: {what} does not come up")


class Bed:
    """A slurmctld and a loopback cloud in a directory, and a configuration for our programs."""

    def __init__(self, folder, nodes):
        self.folder, self.nodes, self.children = folder, nodes, []
        self.hosts = f"vm-standard2-1-ad1-[0001-{nodes:04}]"
        self.slurm = cache() / "slurm" / "24.11"
        self.node_lines = f"NodeName={self.hosts} State=CLOUD CPUs=2 RealMemory=10000 Features=shape=VM.Standard2.1,ad=1\n"

    def up(self):
        folder = self.folder
        for name in ["munge", "run", "state", "etc"]:
            (folder / name).mkdir()
        (folder / "munge").chmod(0o700)
        folder.chmod(0o755)
        self.munged()
        self.cloud()
        self.slurmctld()

    def start(self, *words, **options):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.children.append(subprocess.Popen(list(map(str, words)), **quiet, **options))

    def munged(self):
        munge = self.folder / "munge"
        (munge / "key").write_bytes(os.urandom(128))
        (munge / "key").chmod(0o600)
        files = {"key-file": munge / "key", "pid-file": munge / "pid", "log-file": munge / "log",
                 "seed-file": munge / "seed", "socket": self.folder / "run" / "munge"}
        self.start(self.slurm / "sbin" / "munged", "--foreground", *(f"--{key}={file}" for key, file in files.items()))
        until("munged", files["socket"].exists)

    def cloud(self):
        self.start(built("cloud-sim"), "--state", self.folder / "cloud", "--speed", 60)
        endpoint = self.folder / "cloud" / "endpoint"
        self.endpoint = until("cloud-sim", lambda: endpoint.exists() and endpoint.read_text().strip())

    def slurmctld(self):
        here, user = self.folder, subprocess.check_output(["id", "-un"], text=True).strip()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        lines = {
            "ClusterName": "bench", "SlurmctldHost": f"{socket.gethostname()}(127.0.0.1)", "SlurmctldPort": port,
            "SlurmUser": user, "SlurmdUser": user, "PluginDir": self.slurm / "lib" / "slurm",
            "AuthInfo": f"socket={here}/run/munge", "StateSaveLocation": here / "state",
            "SlurmctldPidFile": here / "run" / "pid", "SlurmctldLogFile": here / "slurmctld.log",
            "ProctrackType": "proctrack/linuxproc", "TaskPlugin": "task/none", "SelectType": "select/cons_tres",
            "ResumeProgram": "/bin/true", "SuspendProgram": "/bin/true", "SuspendTime": 600, "ResumeTimeout": 600,
            "SlurmctldParameters": "idle_on_node_suspend", "MailProg": "/bin/true",
        }
        nodes = f"{self.node_lines}PartitionName=compute Nodes=ALL Default=YES\n"
        text = "".join(f"{key}={value}\n" for key, value in lines.items())
        (here / "etc" / "slurm.conf").write_text(text + nodes)
        (here / "etc" / "cgroup.conf").write_text("CgroupPlugin=disabled\n")
        environment = os.environ | {"SLURM_CONF": str(here / "etc" / "slurm.conf")}
        self.start(self.slurm / "sbin" / "slurmctld", "-D", "-c", env=environment)
        ping = [str(self.slurm / "bin" / "scontrol"), "ping"]
        until("slurmctld", lambda: subprocess.run(ping, env=environment, capture_output=True).returncode == 0)

    def config(self, endpoint):
        """A startnode.yaml for a cloud at this address."""
        path = self.folder / "startnode.yaml"
        path.write_text(
            f"csp: oracle\nregion: us-phoenix-1\ncompartment_id: ocid1.compartment.oc1..aaaacomp\n"
            f"subnet_id: ocid1.subnet.oc1.phx.aaaasub\nimage_id: ocid1.image.oc1.phx.img001\n"
            f"ad_root: 'Uocm:PHX-AD-'\ncluster_id: bench\nendpoint: {endpoint}\n"
            f"config_file: {self.folder}/cloud/oci/config\nslurm_conf: {self.folder}/etc/slurm.conf\n"
            f"slurm_bin: {self.slurm}/bin\n"
            f"elastic: {{state_dir: {self.folder}/elastic, log: {self.folder}/log}}\n")
        return str(path)

    def asked(self):
        """How often the cloud was asked for what, since the last time."""
        with urllib.request.urlopen(f"{self.endpoint}/admin/counts") as answer:
            counts = json.load(answer)["operations"]
        urllib.request.urlopen(urllib.request.Request(f"{self.endpoint}/admin/requests", method="DELETE")).close()
        return counts

    def run(self, name, *words):
        """Peak memory of a program in MB; it has to end well."""
        process = subprocess.Popen([program(name), "--config", self.config(self.endpoint), *words], env={},
                                   stdout=subprocess.DEVNULL)
        code, memory = spent(process)
        if code != 0:
            sys.exit(f"programs: {name} ended with {code}")
        return memory

    def __enter__(self):
        try:
            self.up()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        for child in reversed(self.children):
            child.kill()
            child.wait()
        shutil.rmtree(self.folder)


def first_request(bed, name, *words):
    """Milliseconds from exec to the first byte of a request, the median of some runs."""
    times = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(30)
        config = bed.config(f"http://127.0.0.1:{server.getsockname()[1]}")
        for _ in range(RUNS):
            begun = time.perf_counter()
            process = subprocess.Popen([program(name), "--config", config, *words], env={}, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                connection, _ = server.accept()
            except TimeoutError:
                sys.exit(f"programs: {name} asks for nothing: {(bed.folder / 'log').read_text()}")
            connection.recv(1)
            times.append((time.perf_counter() - begun) * 1000)
            process.kill()
            process.wait()
            connection.close()
    return statistics.median(times)


def folder():
    return pathlib.Path(tempfile.mkdtemp(prefix="se", dir="/tmp"))


def main(venv):
    bar("slurm-elastic: size", os.path.getsize(built("slurm-elastic")) / 1e6, "MB", 9)
    with Bed(folder(), NODES) as bed:
        for name, words in [("startnode", [bed.hosts]), ("stopnode", [bed.hosts]), ("listnodes", [])]:
            bar(f"{name}: exec to first request", first_request(bed, name, *words), "ms", 15)
        for name, words in [("startnode", [bed.hosts]), ("listnodes", []), ("stopnode", ["--all", "--force"])]:
            bar(f"{name}: memory for {NODES} nodes", bed.run(name, *words), "MB", 15)
    oci(venv)
    with Bed(folder(), MANY) as bed:
        thousands(bed)
    print(f"\n{missed} bars missed")
    return missed


def thousands(bed):
    """Thousands of nodes at a time, with a real slurmctld: what that takes, and what the cloud is asked."""
    print(f"\n{bed.nodes} nodes at a time:")
    calls = [("startnode", [bed.hosts]), ("startnode", [bed.hosts]), ("listnodes", []), ("reconcile", []),
             ("stopnode", ["--now", bed.hosts])]
    for name, words in calls:
        bed.asked()
        cpu, begun = children(), time.perf_counter()
        memory = bed.run(name, *words)
        wall, cpu = time.perf_counter() - begun, children() - cpu
        counts = bed.asked()
        changes = counts.pop("LaunchInstance", 0) + counts.pop("TerminateInstance", 0)
        print(f"{name:>42} {wall:8.1f} s, {cpu:.1f} s of CPU, {memory:.1f} MB, {changes} launches or ends")
        bar("changes a node", changes / bed.nodes, "", 1.05)
        bar("other requests for a thousand nodes", sum(counts.values()) * 1000 / bed.nodes, "", 25)


def children():
    """Seconds of CPU of all that has ended, scontrol included."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def oci(venv):
    """What a program in Python pays for its SDK alone, for comparison."""
    python = f"{venv}/bin/python3"
    times, memory = [], 0
    for _ in range(5):
        begun = time.perf_counter()
        _, memory = spent(subprocess.Popen([python, "-c", "import oci"]))
        times.append((time.perf_counter() - begun) * 1000)
    print(f"{'python3 -c import oci: exec to exit':>42} {statistics.median(times):8.1f} ms")
    print(f"{'python3 -c import oci: memory':>42} {memory:8.1f} MB")


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1]) else 0)
