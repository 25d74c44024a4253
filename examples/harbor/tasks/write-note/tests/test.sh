#!/bin/bash
# Writes the reward: 1 when the task is done, else 0.
mkdir -p /logs/verifier
if [ "$(cat /root/note.txt 2>/dev/null)" = 'Meet at noon, by the old harbour.' ]; then reward=1; else reward=0; fi
echo "$reward" >/logs/verifier/reward.txt
