#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds libpq and the two libraries that it needs as archives, from PostgreSQL's source, for the preset
# `portable`. Debian's own libpq.a needs GSSAPI and LDAP, of which Debian ships no archives.
#
#   cmake/build_libpq.sh SOURCE FOLDER HOST COMPILER...
set -euo pipefail

source=$1 folder=$2 host=$3
shift 3
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
# No folder of this machine in the archives: neither in debug information nor in messages.
"$source/configure" --host="$host" --with-openssl --without-gssapi --without-ldap --without-readline \
  --without-zlib --without-icu --sysconfdir=/etc/postgresql-common --bindir=/usr/bin --datadir=/usr/share \
  CC="$*" CFLAGS="-O2 -ffile-prefix-map=$source/= -ffile-prefix-map=$folder/=" > configure.log 2>&1 ||
  { tail -n 20 configure.log >&2; exit 1; }
for part in common port interfaces/libpq; do
  goal=all
  if [ "$part" = interfaces/libpq ]; then goal=all-static-lib; fi
  make -s -C "src/$part" "$goal" >> make.log 2>&1 || { tail -n 20 make.log >&2; exit 1; }
done
mkdir include
cp "$source/src/interfaces/libpq/libpq-fe.h" "$source/src/include/postgres_ext.h" src/include/pg_config_ext.h include/
cp src/interfaces/libpq/libpq.a src/common/libpgcommon_shlib.a src/port/libpgport_shlib.a .
