set -eu
uv venv --quiet --python "$PYTHON" venv
uv pip install --quiet --python venv --require-hashes -r requirements.txt
sed -n 's/^locust==\([^ ]*\).*/\1/p' requirements.txt >version
