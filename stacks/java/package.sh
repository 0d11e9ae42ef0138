#!/bin/sh
# Packages a stack for starting: package.sh MODULE [MAVEN OPTION ...], in the module's folder.
#
# Makes a fat jar, whose size is a result, and the same jar extracted as Spring Boot's guide to efficient deployments
# says. Beside it lies an archive of the loaded classes (class data sharing), which halves the CPU time of a start. A
# training start fills the archive and ends after the setup. It needs no database or upstream, because the stack
# connects at the first request.
set -eu
module=$1
shift
mvn -B -q -f ../pom.xml -pl "$module" -am "$@" package
java -Djarmode=tools -jar target/app.jar extract --destination target/app --force
java -Xms512m -Xmx512m -XX:ArchiveClassesAtExit=target/app.jsa -Dspring.context.exit=onRefresh -jar target/app/app.jar \
    --server.address=127.0.0.1 --server.port=0 --spring.config.additional-location=file:training.properties
