#!/bin/sh
# Packages a stack for starting: package.sh MODULE [MAVEN OPTION ...], in the module's folder.
#
# Its fat jar, whose size is a result; the same laid out as Spring Boot's guide to efficient deployments has it; and beside that an archive of
# the classes that a start loads, checked and laid out for the JVM (class data sharing), which halves the CPU time of a start. A start fills it
# that ends once everything is set up. Nothing connects to a database or an upstream before the first request, so that none has to be there.
set -eu
module=$1
shift
mvn -B -q -f ../pom.xml -pl "$module" -am "$@" package
java -Djarmode=tools -jar target/app.jar extract --destination target/app --force
java -Xms512m -Xmx512m -XX:ArchiveClassesAtExit=target/app.jsa -Dspring.context.exit=onRefresh -jar target/app/app.jar \
    --server.address=127.0.0.1 --server.port=0 --spring.config.additional-location=file:training.properties
