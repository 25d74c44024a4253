#!/bin/bash
# Writes the reward: 1 when the task is done, else 0.
mkdir -p /logs/verifier
if DISPLAY=:1 xprop -root _NET_NUMBER_OF_DESKTOPS | grep -qx '.* = 6'; then reward=1; else reward=0; fi
echo "$reward" >/logs/verifier/reward.txt
