# JMeter's jars from Maven's repository, held against their hashes and laid out as JMeter looks for them.
set -eu
mvn -B -q dependency:copy-dependencies -DoutputDirectory=lib -DincludeScope=runtime
sha256sum --check --quiet --strict sha256.txt
mkdir -p bin lib/ext lib/junit
mv lib/ApacheJMeter-[0-9]*.jar bin/ApacheJMeter.jar
"$PYTHON" -m zipfile -e lib/ApacheJMeter_config-[0-9]*.jar config
mv config/bin/* bin/
rm -r config lib/ApacheJMeter_config-[0-9]*.jar
mv lib/ApacheJMeter_*.jar lib/ext/
install -m 755 jmeter bin/jmeter
sed -n 's/.*ApacheJMeter-\(.*\)\.jar$/\1/p' sha256.txt >version
