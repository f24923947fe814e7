"""Writes a Cargo project that depends on unpacked packages and has the examples of their READMEs: outsider.py DIRECTORY NAME..."""

import pathlib
import sys
import tomllib

# What the examples use beside the crates themselves.
OTHERS = """\
async-trait = "*"
serde_json = "*"
tokio = { version = "*", features = ["macros", "rt", "test-util", "time"] }
"""
NEEDED = ["Cargo.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE", "src/lib.rs"]
FIELDS = ["description", "license", "repository", "homepage", "documentation", "rust-version", "readme"]


def check(folder):
    """Stops if a package lacks what crates.io shows, or carries tests."""
    for name in NEEDED:
        if not (folder / name).is_file():
            sys.exit(f"packages: {folder.name} has no {name}")
    if (folder / "tests").exists():
        sys.exit(f"packages: {folder.name} carries its tests")
    manifest = tomllib.loads((folder / "Cargo.toml").read_text())
    for field in FIELDS:
        if not manifest["package"].get(field):
            sys.exit(f"packages: {folder.name} has no {field}")
    return manifest


def main(directory, names):
    directory = pathlib.Path(directory)
    dependencies, patches, modules = [OTHERS], [], []
    for name in names:
        [folder] = (directory / "packages").glob(f"{name}-[0-9]*")
        manifest = check(folder)
        features = [feature for feature in manifest.get("features", {}) if feature != "default"]
        version = manifest["package"]["version"]
        library = manifest["lib"]["name"]
        dependencies.append(f'{library} = {{ package = "{name}", version = "={version}", features = {features} }}\n')
        patches.append(f'{name} = {{ path = "packages/{folder.name}" }}\n')
        modules.append(f'#[doc = include_str!("../packages/{folder.name}/README.md")]\npub mod {library} {{}}\n')
    (directory / "src/lib.rs").write_text("".join(modules))
    (directory / "Cargo.toml").write_text(
        '[workspace]\n\n[package]\nname = "outsider"\nversion = "0.0.0"\nedition = "2024"\n\n'
        f"[dependencies]\n{''.join(dependencies)}\n[patch.crates-io]\n{''.join(patches)}\n"
        '[profile.dev]\ndebug = "line-tables-only"\n'
    )


main(sys.argv[1], sys.argv[2:])
