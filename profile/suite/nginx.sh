#!/bin/sh
# nginx.sh DIR PORT: writes a configuration and a page of 32 KiB into DIR.
set -eu
dir=$1 port=$2
head -c 32768 /dev/zero | tr '\0' 'x' > "$dir/page"
cat > "$dir/nginx.conf" <<END
daemon off;
worker_processes 1;
pid $dir/nginx.pid;
error_log stderr warn;
events { worker_connections 256; }
http {
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path $dir/body;
  proxy_temp_path $dir/proxy;
  fastcgi_temp_path $dir/fastcgi;
  uwsgi_temp_path $dir/uwsgi;
  scgi_temp_path $dir/scgi;
  default_type text/plain;
  server { listen 127.0.0.1:$port; root $dir; }
}
END
# The workers run as another user where we are root, and must reach the page.
chmod 755 "$dir"
