"""The configuration files of one run, and the clouds.yaml of who uses it."""
import json
import os
import pathlib

HOST = os.environ.get('OPENSTACK_HOST', '127.0.0.1')
REGION = 'RegionOne'
PASSWORD = 'secret'
SERVICES = {'keystone': 'identity', 'glance': 'image', 'placement': 'placement', 'neutron': 'network', 'nova': 'compute'}
# What follows host and port in the catalog.
PATHS = {'keystone': '/v3/', 'glance': '', 'placement': '', 'neutron': '', 'nova': '/v2.1'}


def url(service, ports):
    return f'http://{HOST}:{ports[service]}{PATHS[service]}'


def database(run, name):
    return f'sqlite:///{run}/db/{name}.db?timeout=60'


def _as_service(user, ports):
    return {'auth_url': f'http://{HOST}:{ports["keystone"]}/v3', 'auth_type': 'password', 'username': user,
            'password': PASSWORD, 'project_name': 'service', 'user_domain_name': 'Default',
            'project_domain_name': 'Default', 'region_name': REGION}


def _authtoken(user, ports):
    # What Keystone said is remembered for five minutes: long enough to hide that a token was revoked.
    remember = {'token_cache_time': -1} if user == 'glance' else {}
    return {'www_authenticate_uri': f'http://{HOST}:{ports["keystone"]}', 'service_token_roles_required': 'true',
            **remember, **_as_service(user, ports)}


def _keystone(run, venv, ports):
    return {
        'DEFAULT': {'log_file': f'{run}/log/keystone.log'},
        'database': {'connection': database(run, 'keystone')},
        'token': {'provider': 'fernet', 'expiration': 3600},
        'fernet_tokens': {'key_repository': f'{run}/keys/fernet'},
        'credential': {'key_repository': f'{run}/keys/credential'},
        'cache': {'enabled': 'true', 'backend': 'oslo_cache.dict'},
        'identity': {'password_hash_rounds': 4},
    }


def _glance(run, venv, ports):
    stores = f'{run}/images'
    return {
        'DEFAULT': {'log_file': f'{run}/log/glance.log', 'enabled_backends': 'file:file',
                    'node_staging_uri': f'file://{stores}/staging'},
        'glance_store': {'default_backend': 'file'},
        'file': {'filesystem_store_datadir': f'{stores}/store'},
        'os_glance_staging_store': {'filesystem_store_datadir': f'{stores}/staging'},
        'os_glance_tasks_store': {'filesystem_store_datadir': f'{stores}/tasks'},
        'database': {'connection': database(run, 'glance')},
        'paste_deploy': {'flavor': 'keystone', 'config_file': f'{venv}/etc/glance/glance-api-paste.ini'},
        'oslo_concurrency': {'lock_path': f'{run}/lock'},
        'keystone_authtoken': _authtoken('glance', ports),
    }


def _placement(run, venv, ports):
    return {
        'DEFAULT': {'log_file': f'{run}/log/placement.log'},
        'placement_database': {'connection': database(run, 'placement')},
        'api': {'auth_strategy': 'keystone'},
        'keystone_authtoken': _authtoken('placement', ports),
    }


def _neutron(run, venv, ports):
    return {
        'DEFAULT': {'log_file': f'{run}/log/neutron.log', 'core_plugin': 'ml2', 'service_plugins': '',
                    'transport_url': 'fake:///', 'state_path': f'{run}/state',
                    'api_paste_config': f'{venv}/etc/neutron/api-paste.ini',
                    'notify_nova_on_port_status_changes': 'false', 'notify_nova_on_port_data_changes': 'false',
                    'dhcp_agent_notification': 'false'},
        'database': {'connection': database(run, 'neutron')},
        'ml2': {'type_drivers': 'local', 'tenant_network_types': 'local', 'mechanism_drivers': 'nullbind',
                'extension_drivers': 'port_security'},
        'oslo_concurrency': {'lock_path': f'{run}/lock'},
        'quotas': {'quota_port': 500},
        'keystone_authtoken': _authtoken('neutron', ports),
    }


def _nova(run, venv, ports):
    service = _as_service('nova', ports)
    return {
        'DEFAULT': {'log_file': f'{run}/log/nova.log', 'host': 'fakehost', 'compute_driver': 'steered.SteeredDriver',
                    'transport_url': 'fake:///', 'state_path': f'{run}/state', 'my_ip': HOST,
                    # One process does all of Nova here, and its heartbeat may be late.
                    'service_down_time': 3600, 'rpc_response_timeout': 180, 'sync_power_state_interval': -1,
                    'instance_delete_interval': 0, 'heal_instance_info_cache_interval': -1},
        'api_database': {'connection': database(run, 'nova_api')},
        'database': {'connection': database(run, 'nova_cell1')},
        'conductor': {'workers': 1},
        'scheduler': {'workers': 1},
        'quota': {'instances': 100, 'cores': 200, 'ram': -1},
        'glance': {'api_servers': f'http://{HOST}:{ports["glance"]}'},
        'placement': service,
        'neutron': service,
        # Without it Neutron refuses to let Nova delete a server's port.
        'service_user': {'send_service_user_token': 'true', **service},
        'cinder': {'os_region_name': REGION},
        'vnc': {'enabled': 'false'},
        'oslo_concurrency': {'lock_path': f'{run}/lock'},
        'wsgi': {'api_paste_config': f'{venv}/etc/nova/api-paste.ini'},
        'keystone_authtoken': _authtoken('nova', ports),
    }


_FILES = {'keystone.conf': _keystone, 'glance-api.conf': _glance, 'placement.conf': _placement,
          'neutron.conf': _neutron, 'nova.conf': _nova}


def write(run, venv, ports):
    """Writes every service's file under RUN/etc."""
    for directory in ('etc', 'db', 'log', 'images', 'lock', 'keys', 'state', 'hypervisor'):
        pathlib.Path(run, directory).mkdir(parents=True, exist_ok=True)
    for name, sections in _FILES.items():
        lines = []
        for section, options in sections(run, venv, ports).items():
            lines.append(f'[{section}]')
            lines += [f'{key} = {value}' for key, value in options.items()]
        pathlib.Path(run, 'etc', name).write_text('\n'.join(lines) + '\n')


def clouds(ports, credential=None):
    """The clouds.yaml (JSON is YAML): a user of each project, and the application credential."""
    auth_url = f'http://{HOST}:{ports["keystone"]}/v3'
    entries = {
        user: {'auth': {'auth_url': auth_url, 'username': user, 'password': PASSWORD, 'project_name': user,
                        'user_domain_name': 'Default', 'project_domain_name': 'Default'}, 'region_name': REGION}
        for user in ('admin', 'demo', 'other')
    }
    if credential is not None:
        entries['app'] = {'auth_type': 'v3applicationcredential', 'region_name': REGION,
                          'auth': {'auth_url': auth_url, 'application_credential_id': credential['id'],
                                   'application_credential_secret': credential['secret']}}
    return json.dumps({'clouds': entries}, indent=1)
