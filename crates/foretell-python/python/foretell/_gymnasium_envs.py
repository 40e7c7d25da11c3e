"""The built-in domains in Gymnasium's registry."""

from foretell import _native


def register_envs() -> None:
    """Registers the built-in domains, as ``foretell/tiger-v0`` and so on."""
    from gymnasium.envs.registration import register, registry

    for name, horizon in _native.domain_horizons():
        identity = f"foretell/{name}-v0"
        if identity not in registry:
            register(
                id=identity,
                entry_point="foretell.gymnasium:DomainEnv",
                kwargs={"domain": name},
                max_episode_steps=horizon,
            )
