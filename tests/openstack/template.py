"""Makes the databases that every run begins with: template.py DIR

Schema, bootstrap, and then, with the services running, what the tests use: users, projects, application credentials,
flavors, images, a key pair, a security group and networks, of some two with one name.
"""
import concurrent.futures
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import uuid

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))
import requests  # noqa: E402
import settings  # noqa: E402
from keystoneauth1 import session as sessions  # noqa: E402
from keystoneauth1.identity import v3  # noqa: E402

_loader = importlib.machinery.SourceFileLoader('cloud', str(HERE / 'cloud'))
cloud = importlib.util.module_from_spec(importlib.util.spec_from_loader('cloud', _loader))
_loader.exec_module(cloud)

KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJu2qQKAjle8G4QU9BSYq4P/MUpqXwNe0gNE1lq8kqJC nobody'
NEUTRON_SCHEMA = '''
import sys
from neutron.common import config
from oslo_config import cfg
config.register_common_config_options()
cfg.CONF(sys.argv[1:], project='neutron')
from neutron.db.migration.models import head
from neutron_lib.db import api
head.get_metadata().create_all(api.get_context_manager().writer.get_engine())
'''


def command(run, venv, *words):
    environment = {**cloud.plain_environment(), 'PYTHONPATH': str(HERE / 'plugins'), 'PYTHONWARNINGS': 'ignore',
                   'OS_PLACEMENT_CONFIG_DIR': f'{run}/etc', 'HYPERVISOR': f'{run}/hypervisor'}
    with open(f'{run}/log/{pathlib.Path(words[0]).name}.out', 'ab') as out:
        subprocess.run([f'{venv}/bin/{words[0]}', *words[1:]], check=True, cwd=run, env=environment, stdout=out, stderr=out)


def schema(run, venv, ports):
    """Every service's empty tables; those of one service one after the other, the services side by side."""
    user = {'keystone-user': str(os.getuid()), 'keystone-group': str(os.getgid())}
    owner = [word for name, value in user.items() for word in (f'--{name}', value)]
    url = settings.url('keystone', ports)

    def keystone():
        tool = ('keystone-manage', '--config-file', f'{run}/etc/keystone.conf')
        command(run, venv, *tool, 'db_sync')
        command(run, venv, *tool, 'fernet_setup', *owner)
        command(run, venv, *tool, 'credential_setup', *owner)
        urls = [word for kind in ('admin', 'internal', 'public') for word in (f'--bootstrap-{kind}-url', url)]
        command(run, venv, *tool, 'bootstrap', '--bootstrap-password', settings.PASSWORD,
                '--bootstrap-region-id', settings.REGION, *urls)
        command(run, venv, 'glance-manage', '--config-file', f'{run}/etc/glance-api.conf', 'db_sync')
        command(run, venv, 'placement-manage', '--config-file', f'{run}/etc/placement.conf', 'db', 'sync')

    def nova():
        tool = ('nova-manage', '--config-file', f'{run}/etc/nova.conf')
        # Neutron's own migrations do not run on SQLite.
        command(run, venv, 'python', '-c', NEUTRON_SCHEMA, '--config-file', f'{run}/etc/neutron.conf')
        command(run, venv, *tool, 'api_db', 'sync')
        command(run, venv, *tool, 'cell_v2', 'map_cell0', '--database_connection', settings.database(run, 'nova_cell0'))
        command(run, venv, *tool, 'cell_v2', 'create_cell', '--name', 'cell1', '--database_connection',
                settings.database(run, 'nova_cell1'), '--transport-url', 'fake:///')
        command(run, venv, *tool, 'db', 'sync')

    (run / 'state/compute_id').write_text(str(uuid.uuid5(uuid.NAMESPACE_DNS, 'fakehost')))
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for task in [pool.submit(keystone), pool.submit(nova)]:
            task.result()


class Caller:
    """One user's requests."""

    def __init__(self, user, ports):
        self.ports = ports
        auth = v3.Password(auth_url=settings.url('keystone', ports), username=user, password=settings.PASSWORD,
                           project_name=user, user_domain_name='Default', project_domain_name='Default')
        plain = requests.Session()
        # No proxy of the environment's leads to loopback.
        plain.trust_env = False
        self.session = sessions.Session(auth=auth, session=plain)

    def call(self, method, service, path, headers=None, **more):
        headers = {**(headers or {}), **({'OpenStack-API-Version': 'compute 2.90'} if service == 'nova' else {})}
        url = settings.url(service, self.ports).rstrip('/') + path
        return self.session.request(url, method, headers=headers, **more)

    def make(self, service, path, /, **body):
        """Makes something and returns it."""
        (made,) = self.call('POST', service, path, json=body).json().values()
        return made


def identity(admin, ports):
    roles = {role['name']: role['id'] for role in admin.call('GET', 'keystone', '/roles').json()['roles']}
    if 'service' not in roles:
        roles['service'] = admin.make('keystone', '/roles', role={'name': 'service'})['id']

    def user(name, project, granted):
        body = {'name': name, 'password': settings.PASSWORD, 'domain_id': 'default', 'default_project_id': project}
        made = admin.make('keystone', '/users', user=body)['id']
        for role in granted:
            admin.call('PUT', 'keystone', f'/projects/{project}/users/{made}/roles/{roles[role]}')
        return made

    def project(name):
        return admin.make('keystone', '/projects', project={'name': name, 'domain_id': 'default'})['id']

    service = project('service')
    for name in ('nova', 'glance', 'placement', 'neutron'):
        user(name, service, ('admin', 'service'))
    for name, kind in settings.SERVICES.items():
        if kind == 'identity':
            continue
        made = admin.make('keystone', '/services', service={'type': kind, 'name': name})['id']
        for interface in ('public', 'internal', 'admin'):
            admin.make('keystone', '/endpoints', endpoint={
                'service_id': made, 'interface': interface, 'region_id': settings.REGION,
                'url': settings.url(name, ports)})
    projects = {name: project(name) for name in ('demo', 'other')}
    users = {name: user(name, projects[name], ('member', 'reader')) for name in projects}
    return projects, users


def credentials(demo, user):
    path = f'/users/{user}/application_credentials'
    made = {}
    for name in ('good', 'expired'):
        credential = demo.make('keystone', path, application_credential={'name': f'slurm-{name}'})
        made[name] = {key: credential[key] for key in ('id', 'name', 'secret')}
    return made


def furnish(admin, demo):
    """What can be launched. Two images and two networks are called `twin`."""
    flavors = {}
    for name, vcpus, ram in (('m1.tiny', 1, 512), ('m1.small', 2, 2048), ('m1.giant', 4, 4_000_000)):
        flavors[name] = admin.make('nova', '/flavors', flavor={'name': name, 'vcpus': vcpus, 'ram': ram, 'disk': 1})['id']
    specs = {'extra_specs': {'resources:VGPU': '2'}}
    admin.call('POST', 'nova', f'/flavors/{flavors["m1.small"]}/os-extra_specs', json=specs)
    images = {}
    for name in ('image-1', 'image-2', 'twin', 'twin'):
        image = admin.call('POST', 'glance', '/v2/images', json={
            'name': name, 'disk_format': 'raw', 'container_format': 'bare', 'visibility': 'public',
            'tags': ['compute', 'role=node'], 'cluster': 'blue'}).json()['id']
        admin.call('PUT', 'glance', f'/v2/images/{image}/file', data=b'a disk',
                   headers={'Content-Type': 'application/octet-stream'})
        images[name] = image
    networks = {}
    for name, cidr in (('net-1', '10.20.0.0/22'), ('net-2', '10.30.0.0/22'), ('twin', '10.40.0.0/24'), ('twin', '10.50.0.0/24')):
        networks[name] = demo.make('neutron', '/v2.0/networks', network={'name': name})['id']
        demo.make('neutron', '/v2.0/subnets', subnet={'network_id': networks[name], 'ip_version': 4, 'cidr': cidr})
    group = demo.make('neutron', '/v2.0/security-groups', security_group={'name': 'slurm'})['id']
    key = demo.make('nova', '/os-keypairs', keypair={'name': 'key-1', 'type': 'ssh', 'public_key': KEY})['name']
    placed = demo.make('nova', '/os-server-groups', server_group={'name': 'together', 'policy': 'soft-affinity'})['id']
    return {'flavors': flavors, 'images': images, 'networks': networks, 'security_group': group, 'keypair': key,
            'server_group': placed}


def main(run):
    run = pathlib.Path(run)
    shutil.rmtree(run, ignore_errors=True)
    venv = pathlib.Path(sys.prefix)
    sockets = cloud.listen()
    ports = cloud.ports_of(sockets)
    settings.write(run, venv, ports)
    schema(run, venv, ports)
    processes = cloud.start(run, venv, sockets, ('keystone',))
    try:
        cloud.wait_ready(run, processes, ports)
        admin = Caller('admin', ports)
        projects, users = identity(admin, ports)
        processes |= cloud.start(run, venv, sockets, ('glance', 'placement', 'neutron', 'nova'))
        demo = Caller('demo', ports)
        known = {'projects': projects, 'users': users, 'credentials': credentials(demo, users['demo'])}
        cloud.wait_ready(run, processes, ports)
        known |= furnish(admin, demo)
        other = Caller('other', ports)
        network = other.make('neutron', '/v2.0/networks', network={'name': 'net-1'})['id']
        other.make('neutron', '/v2.0/subnets', subnet={'network_id': network, 'ip_version': 4, 'cidr': '10.20.0.0/22'})
    finally:
        cloud.stop(processes)
    with cloud.opened(run / 'db/keystone.db') as connection:
        # Keystone makes none that has expired already.
        connection.execute('update application_credential set expires_at = 1 where id = ?',
                           (known['credentials']['expired']['id'],))
    for database in run.glob('db/*.db'):
        with cloud.opened(database) as connection:
            connection.execute('PRAGMA wal_checkpoint(TRUNCATE)')
    for leftover in run.glob('db/*.db-*'):
        leftover.unlink()
    (run / 'known.json').write_text(json.dumps(known, indent=1))


if __name__ == '__main__':
    main(sys.argv[1])
