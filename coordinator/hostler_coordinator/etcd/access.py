"""Users and roles of etcd: who may touch which prefix, once, at set-up. Certificates are made elsewhere."""

from __future__ import annotations

from hostler_coordinator.etcd import methods
from hostler_coordinator.etcd.client import EtcdClient
from hostler_coordinator.etcd.keys import prefix_end
from hostler_coordinator.etcd.pb import wire_pb2 as wire


async def add_user(client: EtcdClient, name: str) -> None:
    """A user without a password: whoever shows a certificate with the CN ``name``."""
    options = wire.UserAddOptions(no_password=True)
    await client.call(methods.USER_ADD, wire.AuthUserAddRequest(name=name, options=options))


async def add_role(client: EtcdClient, role: str, prefix: bytes | None = None) -> None:
    """A role that may read and write the keys of ``prefix``; None: none yet (etcd's own role ``root`` needs none)."""
    await client.call(methods.ROLE_ADD, wire.AuthRoleAddRequest(name=role))
    if prefix is not None:
        permission = wire.Permission(perm_type=wire.Permission.READWRITE, key=prefix, range_end=prefix_end(prefix))
        await client.call(methods.ROLE_GRANT, wire.AuthRoleGrantPermissionRequest(name=role, perm=permission))


async def grant_role(client: EtcdClient, user: str, role: str) -> None:
    """The user may do what the role may."""
    await client.call(methods.USER_GRANT_ROLE, wire.AuthUserGrantRoleRequest(user=user, role=role))


async def enable(client: EtcdClient) -> None:
    """From now on nobody does anything without a role; needs a user ``root`` with the role ``root``."""
    await client.call(methods.AUTH_ENABLE, wire.AuthEnableRequest())
