//! See `bins::multicall`.

use std::process::ExitCode;

fn main() -> ExitCode {
    bins::multicall::main()
}
