#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Hook of enroot, for every container of the site, also of pyxis: preloads the library, which
# mounts.d/50-rollcall.fstab mounts. A container without it: ROLLCALL=0.
#
# A hook and no environ.d: a line there would replace the LD_PRELOAD of the image, and it would reach
# images of musl, where a library of glibc stops every program.
#
# enroot gives up the container if a hook fails, so this one always exits with 0.
library=/usr/lib/rollcall/librollcall.so
environ=${ENROOT_ENVIRON:-}
root=${ENROOT_ROOTFS:-}
[ -w "$environ" ] && [ -r "$library" ] || exit 0

# value NAME: of the container's environment, else of the job's.
value() {
  own=$(sed -n "s/^$1=//p" "$environ" | tail -n 1)
  [ -n "$own" ] || eval "own=\${$1:-}"
  printf '%s' "$own"
}

case $(value ROLLCALL) in
  0 | off) exit 0 ;;
esac
for linker in "$root"/lib/ld-musl-*; do
  [ ! -e "$linker" ] || exit 0
done

old=$(sed -n 's/^LD_PRELOAD=//p' "$environ" | tail -n 1)
case ":$old:" in
  *librollcall.so[:\ ]*) ;;
  *)
    kept=$(sed '/^LD_PRELOAD=/d' "$environ")
    { [ -z "$kept" ] || printf '%s\n' "$kept"; printf 'LD_PRELOAD=%s\n' "$library${old:+:$old}"; } > "$environ.rollcall" &&
      cat "$environ.rollcall" > "$environ"
    rm -f "$environ.rollcall"
    ;;
esac
exit 0
