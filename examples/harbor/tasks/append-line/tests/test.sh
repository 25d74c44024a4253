#!/bin/bash
# Writes the reward: 1 when the task is done, else 0.
mkdir -p /logs/verifier
if [ "$(cat /root/letter.txt)" = "$(printf 'Dear Charles,\nthe engine works.\nYours, Ada')" ]; then reward=1; else reward=0; fi
echo "$reward" >/logs/verifier/reward.txt
