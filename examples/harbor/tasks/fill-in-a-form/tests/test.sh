#!/bin/bash
# Writes the reward: 1 when the task is done, else 0.
mkdir -p /logs/verifier
if python3 -c 'import json; assert json.load(open("/root/.form.json")) == {"name": "Grace Hopper", "town": "New York"}' 2>/dev/null; then reward=1; else reward=0; fi
echo "$reward" >/logs/verifier/reward.txt
