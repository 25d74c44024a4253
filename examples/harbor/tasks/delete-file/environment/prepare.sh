#!/bin/bash
# What this task finds on its desktop.
echo 'old' >/root/Documents/old.txt
