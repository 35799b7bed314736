#!/bin/sh
# build.sh GENERATOR.jar OUT: makes the types of the bodies and compiles the client into OUT/sakshi-client.jar, with Debian's
# libraries (libjackson2-databind-java, libjakarta-annotation-api-java, libtomcat10-embed-java).
set -eu
generator=$1 out=$2
here=$(cd "$(dirname "$0")" && pwd)
libraries=/usr/share/java
rm -rf "$out"
mkdir -p "$out"
# Bodies alone. Polymorphic ones are read as JSON, times are texts, and so is a language, so that no further library is needed.
java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -jar "$generator" generate -i "$here/../openapi.json" -g java --library resttemplate -o "$out/generated" \
  --model-package sakshi.client.model --global-property models,modelDocs=false,modelTests=false \
  --type-mappings DateTime=String,date=String,URI=String,UUID=String --schema-mappings Language=String --additional-properties \
  openApiNullable=false,hideGenerationTimestamp=true,annotationLibrary=none,documentationProvider=none,useJakartaEe=true >"$out/generated.log" 2>&1 ||
  { cat "$out/generated.log" >&2; exit 1; }
find "$here/src/main/java" "$out/generated/src/main/java" -name '*.java' >"$out/sources"
servlets=$(ls "$libraries"/jakarta-servlet-api.jar "$libraries"/tomcat10-embed-core.jar 2>/dev/null | head -1)
javac -J-XX:TieredStopAtLevel=1 -proc:none -nowarn --release 17 -d "$out/classes" \
  -cp "$libraries/jackson-databind.jar:$libraries/jackson-core.jar:$libraries/jackson-annotations.jar:$libraries/jakarta-annotation-api.jar:$servlets" @"$out/sources"
jar --create --file "$out/sakshi-client.jar" -C "$out/classes" .
