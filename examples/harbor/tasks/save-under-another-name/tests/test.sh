#!/bin/bash
# Writes the reward: 1 when the task is done, else 0.
mkdir -p /logs/verifier
if cmp -s /root/draft.txt /root/final.txt && [ "$(cat /root/draft.txt)" = 'Chapter one.' ]; then reward=1; else reward=0; fi
echo "$reward" >/logs/verifier/reward.txt
