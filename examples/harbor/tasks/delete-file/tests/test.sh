#!/bin/bash
# Writes the reward: 1 when the task is done, else 0.
mkdir -p /logs/verifier
documents=/root/Documents
if [ "$(ls "$documents")" = keep.txt ] && [ "$(cat "$documents/keep.txt")" = 'Somebody needs this.' ] &&
  [ ! -e /root/.local/share/Trash/files/old.txt ]; then reward=1; else reward=0; fi
echo "$reward" >/logs/verifier/reward.txt
