#!/usr/bin/env bash
# The system's programs that the tests use: an ssh server, Chromium, Emacs with eglot. Debian's packages; as root.
set -euo pipefail
missing=()
command -v sshd > /dev/null || [ -x /usr/sbin/sshd ] || missing+=(openssh-server)
command -v ssh > /dev/null || missing+=(openssh-client)
command -v chromium > /dev/null || missing+=(chromium)
command -v emacs > /dev/null || missing+=(emacs-nox)
[ -d /usr/share/emacs/site-lisp/elpa ] && ls /usr/share/emacs/site-lisp/elpa | grep -q '^eglot' || missing+=(elpa-eglot)
if [ ${#missing[@]} -gt 0 ]; then
  echo "installing ${missing[*]}" >&2
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
fi
