#!/bin/bash
# What this task finds on its desktop.
head -c 24 /dev/urandom | base64 >/root/code.txt
