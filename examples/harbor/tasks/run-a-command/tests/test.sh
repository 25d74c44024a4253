#!/bin/bash
# Writes the reward: 1 when the task is done, else 0.
mkdir -p /logs/verifier
if [ "$(cat /root/count.txt 2>/dev/null)" = 1234 ]; then reward=1; else reward=0; fi
echo "$reward" >/logs/verifier/reward.txt
