#!/bin/bash
# Writes the reward: 1 when the task is done, else 0.
mkdir -p /logs/verifier
documents=/root/Documents
# A file in a trash, moved or under another name is not deleted: its text is looked for, too.
left=$(grep -rlsxF 'Nobody needs this.' /root /home /tmp /.Trash*)
if [ "$(ls -A "$documents")" = keep.txt ] && [ "$(cat "$documents/keep.txt")" = 'Somebody needs this.' ] &&
  [ -z "$left" ]; then reward=1; else reward=0; fi
echo "$reward" >/logs/verifier/reward.txt
