"""Processes in a row: torch.distributed.device_mesh, of one dimension."""

from tern import _C, distributed


class DeviceMesh:
    """The processes of a group, by their numbers, and the kind of device that they compute on."""

    def __init__(self, device_type, mesh=None, *, mesh_dim_names=None, group=None):
        self.device_type = _C.device(device_type).type
        self.mesh = _C.arange(distributed.get_world_size()) if mesh is None else _C.as_tensor(mesh)
        if self.mesh.dim() != 1:
            raise _C.NotImplementedError(f"a mesh of {self.mesh.dim()} dimensions: there are those of one")
        self.mesh_dim_names = tuple(mesh_dim_names) if mesh_dim_names else None
        ranks = self.mesh.tolist()
        if group is None:
            world = distributed._group(None)
            group = world if ranks == list(world._ranks) else distributed.new_group(ranks)
        self._group = group

    ndim = 1

    @property
    def shape(self):
        return tuple(self.mesh.shape)

    def size(self, mesh_dim=None):
        return self.mesh.numel()

    def __len__(self):
        return self.size()

    def get_group(self, mesh_dim=None):
        return self._group

    def get_all_groups(self):
        return [self._group]

    def get_rank(self):
        return distributed.get_rank()

    def get_local_rank(self, mesh_dim=None):
        return self._group.rank()

    def get_coordinate(self):
        return [self._group.rank()]

    def __getitem__(self, name):
        if self.mesh_dim_names != (name,):
            raise KeyError(f"Invalid mesh_dim_name {name!r}: this mesh has {self.mesh_dim_names}")
        return self

    def __repr__(self):
        return f"DeviceMesh({self.device_type!r}, {self.mesh.tolist()})"

    @staticmethod
    def from_group(group, device_type, mesh=None, *, mesh_dim_names=None):
        return DeviceMesh(device_type, distributed.get_process_group_ranks(group), mesh_dim_names=mesh_dim_names, group=group)


def init_device_mesh(device_type, mesh_shape, *, mesh_dim_names=None):
    """A mesh of all processes, which meet first where they have not yet. `mesh_shape` is (number of processes,)."""
    if not distributed.is_initialized():
        distributed.init_process_group()
    shape = tuple(mesh_shape)
    if len(shape) != 1:
        raise _C.NotImplementedError(f"init_device_mesh: a mesh of {len(shape)} dimensions: there are those of one")
    if shape[0] != distributed.get_world_size():
        raise _C.ValueError(f"init_device_mesh: there are {distributed.get_world_size()} processes, the mesh has {shape[0]}")
    return DeviceMesh(device_type, mesh_dim_names=mesh_dim_names)
