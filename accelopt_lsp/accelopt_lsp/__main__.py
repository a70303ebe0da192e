"""``python -m accelopt_lsp`` is the command ``accelopt``."""

from accelopt_lsp.cli.main import main

if __name__ == "__main__":
    main()
