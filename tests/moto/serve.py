"""Runs moto's EC2 with its signature check, a network, images and users.

Writes to DIRECTORY: `endpoint`; `cloud.json`, the ids of all that it has made; `aws/credentials` and `aws/config`, for the user of
the programs under test, whose only permissions are those of POLICY; `log`. The first line of the output is the endpoint.

Ends when its input ends. Each line of the input is a call of boto3 as the administrator of the account, such as
{"call": "describe_instances", "with": {"MaxResults": 100}}, of EC2 or of another "service", and is answered by one line:
{"answer": ...} or {"error": ...}. The call `boots` tells how each instance has booted, `root_images` which image those boot whose
root volume was replaced, `room` sets how many instances fit, `pages` how many of them a page of a listing has at most, and
`reset` how many requests are let by without a look at their signature.
"""

import argparse
import functools
import json
import logging
import os
import pathlib
import sys
import threading
import urllib.request

import additions
import boto3
from werkzeug.serving import make_server

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app

REGION = "eu-west-1"
# Test machines and the controller are in one range: see tests/src/network.rs.
RANGE = "10.77.0.0/16"
ZONES = {f"{REGION}a": "10.77.16.0/20", f"{REGION}b": "10.77.32.0/20", f"{REGION}c": "10.77.48.0/20"}
IMAGES = {"image-1": "x86_64", "image-2": "x86_64", "image-arm": "arm64"}


class OneAtATime:
    """moto's models are not made for many threads: a listing during a launch fails."""

    def __init__(self, application):
        self.application, self.lock = application, threading.Lock()

    def __call__(self, environ, start_response):
        with self.lock:
            return list(self.application(environ, start_response))


def start(host, port):
    """Serves for ever on a thread, and gives the endpoint."""
    application = OneAtATime(DomainDispatcherApplication(create_backend_app))
    server = make_server(host, port, application, threaded=True, request_handler=MotoRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return "http://{}:{}".format(*server.server_address[:2])


def client(service, endpoint, key):
    config = boto3.session.Config(retries={"max_attempts": 1}, read_timeout=120)
    return boto3.client(service, endpoint_url=endpoint, region_name=REGION, config=config, **key)


def require_signatures(endpoint, after):
    """Lets by so many requests without a look at their signature, from now on."""
    plain = {"Content-Type": "text/plain"}
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/moto-api/reset-auth", str(after).encode(), plain)).close()


def user(iam, name, policy):
    """An access key of a new user, by boto3's names."""
    iam.create_user(UserName=name)
    iam.put_user_policy(UserName=name, PolicyName="all-it-may", PolicyDocument=json.dumps(policy))
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return {"aws_access_key_id": key["AccessKeyId"], "aws_secret_access_key": key["SecretAccessKey"]}


def by_action(policy):
    """A policy as moto can decide on it: it knows neither the resource of a request nor what conditions are about."""
    plain = [{"Effect": one["Effect"], "Action": one["Action"], "Resource": "*"} for one in policy["Statement"]]
    return {**policy, "Statement": plain}


def tags(kind, **values):
    return [{"ResourceType": kind, "Tags": [{"Key": key, "Value": value} for key, value in values.items()]}]


def network(ec2):
    """Ids of a network with a subnet in each zone."""
    vpc = ec2.create_vpc(CidrBlock=RANGE, TagSpecifications=tags("vpc", Name="cluster"))["Vpc"]["VpcId"]
    subnets = {
        zone: ec2.create_subnet(VpcId=vpc, CidrBlock=cidr, AvailabilityZone=zone)["Subnet"]["SubnetId"]
        for zone, cidr in ZONES.items()
    }
    group = ec2.create_security_group(GroupName="slurm", Description="machines of the cluster", VpcId=vpc)["GroupId"]
    return {"vpc": vpc, "subnets": subnets, "security_group": group}


def images(ec2):
    """Ids of images, the oldest first, as a build with Packer leaves them."""
    made = {}
    for name, architecture in IMAGES.items():
        made[name] = ec2.register_image(Name=f"citc-slurm-compute-{name}", Architecture=architecture)["ImageId"]
        ec2.create_tags(Resources=[made[name]], Tags=[{"Key": "cluster", "Value": "c1"}])
    additions.dress_images(REGION, {made[name]: architecture for name, architecture in IMAGES.items()})
    return made


def contents(endpoint):
    """Makes what is there, as somebody whom nobody asks for a signature."""
    anybody = {"aws_access_key_id": "AKIAANYBODY", "aws_secret_access_key": "anything"}
    ec2, iam = client("ec2", endpoint, anybody), client("iam", endpoint, anybody)
    for name in ["ec2-user-c1", "key-1"]:
        ec2.create_key_pair(KeyName=name)
    for name in ["describe_tags-c1", "compute"]:
        iam.create_instance_profile(InstanceProfileName=name)
    return {"region": REGION, "images": images(ec2), **network(ec2)}, iam


def write_profile(directory, key):
    folder = directory / "aws"
    folder.mkdir(exist_ok=True)
    (folder / "config").write_text(f"[default]\nregion = {REGION}\n")
    credentials = folder / "credentials"
    credentials.touch(mode=0o600)
    credentials.write_text("[default]\n" + "".join(f"{name} = {value}\n" for name, value in key.items()))


def obey(line, clients, endpoint):
    order = json.loads(line)
    call, arguments = order["call"], order.get("with", {})
    service = order.get("service", "ec2")
    if call == "boots":
        return additions.boots
    if call == "root_images":
        return additions.root_images
    if call == "room":
        return additions.set_room(**arguments)
    if call == "pages":
        return additions.pages.update(arguments)
    if call == "reset":
        return require_signatures(endpoint, **arguments)
    if call == "describe_instances":
        pages = clients(service).get_paginator(call).paginate(**arguments)
        return [one for page in pages for reservation in page["Reservations"] for one in reservation["Instances"]]
    return getattr(clients(service), call)(**arguments)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--listen", default="127.0.0.1:0", metavar="ADDRESS:PORT")
    parser.add_argument("--policy", type=pathlib.Path, help="what the user may; everything without it")
    arguments = parser.parse_args()
    directory = arguments.directory
    directory.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(filename=directory / "log", level=logging.ERROR, force=True)
    # Each request otherwise.
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    additions.add()
    host, port = arguments.listen.rsplit(":", 1)
    endpoint = start(host, int(port))
    known, iam = contents(endpoint)
    everything = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    policy = by_action(json.loads(arguments.policy.read_text())) if arguments.policy else everything
    key = user(iam, "administrator", everything)
    clients = functools.cache(lambda service: client(service, endpoint, key))
    write_profile(directory, user(iam, "programs", policy))
    require_signatures(endpoint, 0)
    (directory / "cloud.json").write_text(json.dumps({"endpoint": endpoint, **known}, indent=1))
    (directory / "endpoint").write_text(endpoint)
    print(endpoint, flush=True)
    for line in sys.stdin:
        try:
            said = {"answer": obey(line, clients, endpoint)}
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(said, default=str), flush=True)


if os.environ.get("MOTO_EC2_LOAD_DEFAULT_AMIS") != "false":
    sys.exit("run tests/moto/serve, which sets what this needs")
main()
