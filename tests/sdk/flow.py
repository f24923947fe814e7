"""Drives cloud-sim with Oracle's own SDK; each line that fails says what it saw.

Usage: flow.py CONFIG ENDPOINT
"""

import json
import os
import sys
import urllib.parse
import urllib.request

import oci
from oci.core.models import (
    CreateVnicDetails,
    InstanceSourceViaImageDetails,
    LaunchInstanceDetails,
    LaunchInstanceShapeConfigDetails,
    UpdateInstanceDetails,
    UpdateInstanceSourceViaImageDetails,
)

COMPARTMENT = "ocid1.compartment.oc1..aaaacomp"
DOMAIN = "Uocm:PHX-AD-1"
SUBNET = "ocid1.subnet.oc1.phx.aaaasub"
IMAGE = "ocid1.image.oc1.phx.img001"
NEW_IMAGE = "ocid1.image.oc1.phx.new"
WAIT = {"max_wait_seconds": 120, "max_interval_seconds": 1}


def check(what, seen, expected):
    if seen != expected:
        sys.exit(f"sdk: {what}: expected {expected!r}, saw {seen!r}")
    print(f"sdk: {what}: {seen}")


def details(name):
    return LaunchInstanceDetails(
        availability_domain=DOMAIN,
        compartment_id=COMPARTMENT,
        display_name=name,
        shape="VM.Standard.E5.Flex",
        shape_config=LaunchInstanceShapeConfigDetails(ocpus=2, memory_in_gbs=16),
        source_details=InstanceSourceViaImageDetails(image_id=IMAGE),
        create_vnic_details=CreateVnicDetails(subnet_id=SUBNET, hostname_label=name),
        freeform_tags={"cluster": "sdk"},
    )


def refused(what, status, code, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except oci.exceptions.ServiceError as error:
        check(what, (error.status, error.code), (status, code))
    else:
        sys.exit(f"sdk: {what}: not refused")


def clock(endpoint, speed):
    url = "{0.scheme}://{0.netloc}/admin/clock".format(urllib.parse.urlsplit(endpoint))
    body = json.dumps({"speed": speed}).encode()
    urllib.request.urlopen(urllib.request.Request(url, data=body, method="PUT")).close()


def same_label(compute, work):
    """A host name that is taken is found out when the VNIC is made."""
    other = compute.launch_instance(details("sdk-1")).headers["opc-work-request-id"]
    failed = oci.wait_until(work, work.get_work_request(other), "status", "FAILED", **WAIT)
    check("same label", failed.data.status, "FAILED")
    check("same label, why", work.list_work_request_errors(other).data[0].code, "vcn-error")


def instances(compute, network, work):
    launched = compute.launch_instance(details("sdk-1"), opc_retry_token="sdk-1")
    again = compute.launch_instance(details("sdk-1"), opc_retry_token="sdk-1")
    check("same token, same instance", again.data.id, launched.data.id)
    same_label(compute, work)
    vm = launched.data.id
    running = oci.wait_until(compute, compute.get_instance(vm), "lifecycle_state", "RUNNING", **WAIT)
    check("launch", running.data.lifecycle_state, "RUNNING")
    check("tags", running.data.freeform_tags, {"cluster": "sdk"})

    attachments = compute.list_vnic_attachments(COMPARTMENT, instance_id=vm).data
    check("attachment", [a.lifecycle_state for a in attachments], ["ATTACHED"])
    vnic = network.get_vnic(attachments[0].vnic_id).data
    check("vnic", (vnic.is_primary, vnic.hostname_label), (True, "sdk-1"))
    addresses = network.list_private_ips(subnet_id=SUBNET).data
    check("address", [a.ip_address for a in addresses if a.vnic_id == vnic.id], [vnic.private_ip])

    # The clock stands still, so that the first reset is not over before the second comes.
    clock(compute.base_client.endpoint, 0)
    compute.instance_action(vm, "SOFTRESET")
    refused("reset of a reset", 409, "IncorrectState", compute.instance_action, vm, "RESET")
    clock(compute.base_client.endpoint, 20)
    back = oci.wait_until(compute, compute.get_instance(vm), "lifecycle_state", "RUNNING", **WAIT)
    check("SOFTRESET", back.data.lifecycle_state, "RUNNING")

    source = UpdateInstanceSourceViaImageDetails(
        image_id=NEW_IMAGE, is_preserve_boot_volume_enabled=False, boot_volume_size_in_gbs=60
    )
    update = UpdateInstanceDetails(source_details=source, update_operation_constraint="ALLOW_DOWNTIME")
    compute.update_instance(vm, update)
    back = oci.wait_until(compute, compute.get_instance(vm), "lifecycle_state", "RUNNING", **WAIT)
    check("boot-volume replace", (back.data.id, back.data.image_id), (vm, NEW_IMAGE))
    stale = {"if_match": "stale"}
    refused("stale etag", 412, "NoEtagMatch", compute.terminate_instance, vm, **stale)
    return vm


def lists(compute):
    ids = [compute.launch_instance(details(f"sdk-page-{n}")).data.id for n in range(7)]
    found = oci.pagination.list_call_get_all_results(compute.list_instances, COMPARTMENT, limit=3)
    seen = {i.id for i in found.data}
    check("paged list", set(ids) <= seen and len(seen) == len(found.data), True)
    first = compute.list_instances(COMPARTMENT, limit=3)
    check("page", (len(first.data), first.has_next_page), (3, True))
    named = compute.list_instances(COMPARTMENT, display_name="sdk-page-4").data
    check("list by name", [i.id for i in named], [ids[4]])
    images = compute.list_images(COMPARTMENT, operating_system="Oracle Linux", sort_by="TIMECREATED").data
    check("images", NEW_IMAGE in [i.id for i in images], True)
    check("shapes", "VM.Standard.E5.Flex" in [s.shape for s in compute.list_shapes(COMPARTMENT).data], True)
    return ids


def limits(config, endpoint, identity):
    check("domains", len(identity.list_availability_domains(COMPARTMENT).data), 3)
    check("fault domains", len(identity.list_fault_domains(COMPARTMENT, DOMAIN).data), 3)
    client = oci.limits.LimitsClient(config, service_endpoint=endpoint)
    name, tenancy = "standard-e5-core-count", config["tenancy"]
    values = client.list_limit_values(tenancy, "compute", availability_domain=DOMAIN, name=name).data
    check("limit", [v.name for v in values], [name])
    left = client.get_resource_availability("compute", name, tenancy, availability_domain=DOMAIN).data
    check("used cores", left.used, 16)
    check("available cores", left.available, values[0].value - 16)


def terminate(compute, work, ids):
    requests = [compute.terminate_instance(i).headers["opc-work-request-id"] for i in ids]
    for request in requests:
        done = oci.wait_until(work, work.get_work_request(request), "status", "SUCCEEDED", **WAIT)
        check("terminate", done.data.status, "SUCCEEDED")
    check("terminated", {compute.get_instance(i).data.lifecycle_state for i in ids}, {"TERMINATED"})
    missing = "ocid1.instance.oc1.phx.nope"
    refused("missing", 404, "NotAuthorizedOrNotFound", compute.get_instance, missing)
    token = {"opc_retry_token": "sdk-1"}
    call = compute.launch_instance
    refused("used token", 409, "InvalidatedRetryToken", call, details("sdk-1"), **token)


def wrong_key(config, endpoint):
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path = os.path.join(os.path.dirname(config["key_file"]), "wrong.pem")
    with open(path, "wb") as file:
        os.chmod(path, 0o600)
        file.write(pem)
    stranger = oci.core.ComputeClient({**config, "key_file": path}, service_endpoint=endpoint)
    refused("wrong key", 401, "NotAuthenticated", stranger.list_instances, COMPARTMENT)


def instance_principal(endpoint):
    signer = oci.auth.signers.InstancePrincipalsSecurityTokenSigner(
        federation_endpoint=f"{endpoint}/v1/x509"
    )
    compute = oci.core.ComputeClient({}, signer=signer, service_endpoint=endpoint)
    check("instance principal", compute.list_instances(COMPARTMENT).status, 200)


def main():
    path, endpoint = sys.argv[1:]
    config = oci.config.from_file(path)
    compute = oci.core.ComputeClient(config, service_endpoint=endpoint)
    network = oci.core.VirtualNetworkClient(config, service_endpoint=endpoint)
    identity = oci.identity.IdentityClient(config, service_endpoint=endpoint)
    work = oci.work_requests.WorkRequestClient(config, service_endpoint=endpoint)
    ids = [instances(compute, network, work)]
    ids += lists(compute)
    limits(config, endpoint, identity)
    terminate(compute, work, ids)
    wrong_key(config, endpoint)
    instance_principal(endpoint)


main()
