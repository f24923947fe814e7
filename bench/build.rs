//! Links libslurm, from Debian's libslurm-dev.

fn main() {
    println!("cargo:rustc-link-lib=slurm");
}
