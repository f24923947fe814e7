"""Starts node_exporter and Prometheus, waits until they have scraped, and asks every query of a dashboard."""

import json
import subprocess
import sys
import time
import urllib.parse
import urllib.request

PATIENCE = 90
ADDRESS = "http://127.0.0.1:9090"


def ask(path, **arguments):
    url = f"{ADDRESS}{path}?{urllib.parse.urlencode(arguments)}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)["data"]


def value_of(query):
    return ask("/api/v1/query", query=query)["result"]


def wait_for(what, condition):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            if condition():
                return
        except (OSError, IndexError):
            pass
        time.sleep(0.5)
    sys.exit(f"prometheus: {what}: not within {PATIENCE} s")


def check(dashboard):
    name = "slurm_elastic_reconcile_timestamp_seconds"
    wait_for("three scrapes", lambda: int(value_of(f"count_over_time({name}[1m])")[0]["value"][1]) >= 3)
    wait_for("rules", lambda: all(rule["health"] == "ok" for rule in rules()))
    empty, asked = [], 0
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            query = target["expr"].replace("$__rate_interval", "1m")
            found = value_of(query)
            asked += 1
            if not found or any(one["value"][1] == "NaN" for one in found):
                empty.append(f"{panel['title']}: {query}: {found}")
    for line in empty:
        print(f"prometheus: no data: {line}", file=sys.stderr)
    series = len(value_of('{__name__=~"slurm_elastic_.*"}'))
    print(f"prometheus: {series} series scraped, {len(rules())} rules healthy, {asked} queries asked, {len(empty)} without data")
    return 1 if empty else 0


def rules():
    found = [rule for group in ask("/api/v1/rules")["groups"] for rule in group["rules"]]
    assert found, "no rules are loaded"
    return found


def main(programs, work, dashboard):
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    exporter = [f"{programs}/prometheus-node-exporter", "--collector.disable-defaults", "--collector.textfile",
                f"--collector.textfile.directory={work}/textfile", "--web.listen-address=127.0.0.1:9100"]
    server = [f"{programs}/prometheus", f"--config.file={work}/prometheus.yml", f"--storage.tsdb.path={work}/data",
              "--web.listen-address=127.0.0.1:9090"]
    started = [subprocess.Popen(command, **quiet) for command in (exporter, server)]
    try:
        with open(dashboard, encoding="utf-8") as file:
            return check(json.load(file))
    finally:
        for process in started:
            process.kill()
            process.wait()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
